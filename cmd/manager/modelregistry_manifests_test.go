package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

const injectedByServiceCA = "service.beta.openshift.io/inject-cabundle"

// hook is a webhook, with the fields that mutating and validating webhooks share.
type hook struct {
	admissionregistrationv1.ValidatingWebhook
	configuration string
	annotations   map[string]string
}

func registryHooks(t *testing.T) map[string]hook {
	t.Helper()
	mutating := readManifests[admissionregistrationv1.MutatingWebhookConfiguration](t, "webhook/modelregistry/configurations.yaml")[0]
	m := mutating.Webhooks[0]
	hooks := map[string]hook{"mutating": {admissionregistrationv1.ValidatingWebhook{
		Name: m.Name, ClientConfig: m.ClientConfig, Rules: m.Rules, FailurePolicy: m.FailurePolicy, MatchPolicy: m.MatchPolicy,
		NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector, SideEffects: m.SideEffects, TimeoutSeconds: m.TimeoutSeconds,
		AdmissionReviewVersions: m.AdmissionReviewVersions, MatchConditions: m.MatchConditions,
	}, mutating.Name, mutating.Annotations}}
	validating := readManifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, "webhook/modelregistry/configurations.yaml")[1]
	hooks["validating"] = hook{validating.Webhooks[0], validating.Name, validating.Annotations}
	catalog := readManifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, "webhook/modelcatalog/configurations.yaml")[0]
	hooks["catalog"] = hook{catalog.Webhooks[0], catalog.Name, catalog.Annotations}
	return hooks
}

// [S9] The webhook configurations match the served paths, and have the names, versions and timeouts that clients expect.
func TestWebhookManifestsOfRegistries(t *testing.T) {
	hooks := registryHooks(t)
	for key, want := range map[string]struct {
		configuration, name, path string
		timeout                   int32
		operations, versions      []string
	}{
		"mutating": {webhook.MutatingConfiguration, "mmodelregistry.opendatahub.io", webhook.MutatePath, 10, []string{"CREATE", "UPDATE"}, []string{"v1alpha1", "v1beta1"}},
		"validating": {webhook.ValidatingConfiguration, "vmodelregistry.opendatahub.io", webhook.ValidatePath, 10, []string{"CREATE", "UPDATE"},
			[]string{"v1alpha1", "v1beta1"}},
		"catalog": {webhook.CatalogValidatingConfiguration, "vcatalog.aihub.opendatahub.io", webhook.ValidateCatalogPath, 5, []string{"CREATE", "UPDATE"}, []string{"v1alpha1"}},
	} {
		h := hooks[key]
		var operations []string
		for _, operation := range h.Rules[0].Operations {
			operations = append(operations, string(operation))
		}
		if h.configuration != want.configuration || h.Name != want.name || *h.ClientConfig.Service.Path != want.path || h.ClientConfig.Service.Name != webhookService {
			t.Errorf("%s: unexpected configuration %s, name %s or Service %+v", key, h.configuration, h.Name, h.ClientConfig.Service)
		}
		if *h.TimeoutSeconds != want.timeout || *h.FailurePolicy != "Fail" || *h.MatchPolicy != "Equivalent" || *h.SideEffects != "None" ||
			!slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) || h.NamespaceSelector != nil || h.ObjectSelector != nil {
			t.Errorf("%s: unexpected ValidatingWebhook: %+v", key, h.ValidatingWebhook)
		}
		if !slices.Equal(operations, want.operations) || !slices.Equal(h.Rules[0].APIVersions, want.versions) || len(h.Rules) != 1 {
			t.Errorf("%s: unexpected Rules: %+v", key, h.Rules)
		}
		if h.annotations[injectedByServiceCA] != "false" {
			t.Errorf("%s: the service CA of OpenShift would also write the CA bundle after an adoption", key)
		}
	}
	// [D3] A terminating registry can be updated while the manager is down.
	for _, key := range []string{"mutating", "validating"} {
		if conditions := hooks[key].MatchConditions; len(conditions) != 1 || !strings.Contains(conditions[0].Expression, "deletionTimestamp") {
			t.Errorf("%s: unexpected conditions: %+v", key, conditions)
		}
	}
}

func TestConversionManifestOfRegistries(t *testing.T) {
	crd := readManifests[apiextensionsv1.CustomResourceDefinition](t, "crd/conversion.yaml")[0]
	c := crd.Spec.Conversion
	if crd.Name != webhook.ConvertedCRD || c.Strategy != apiextensionsv1.WebhookConverter || *c.Webhook.ClientConfig.Service.Path != webhook.ConvertPath ||
		c.Webhook.ClientConfig.Service.Name != webhookService || !slices.Equal(c.Webhook.ConversionReviewVersions, []string{"v1"}) || crd.Annotations[injectedByServiceCA] != "false" {
		t.Errorf("got CRD %+v, want conversion by the webhook of the manager", crd)
	}
	var targets []string
	for _, target := range modelRegistrySpec(&Env{}).CABundleTargets {
		if target.Kind == certs.Conversion {
			targets = append(targets, target.Name)
		}
	}
	if !slices.Equal(targets, []string{crd.Name}) {
		t.Errorf("CA bundle targets %v, want %v", targets, []string{crd.Name})
	}
}

// The manager may read, watch and patch every object with a CA bundle. Except for Events, it may patch only objects of given names.
func TestManagerMayPatchCABundles(t *testing.T) {
	role := readManifests[rbacv1.ClusterRole](t, "rbac/manager/role.yaml")[0]
	resources := map[string]string{
		certs.Mutating.Kind: "mutatingwebhookconfigurations", certs.Validating.Kind: "validatingwebhookconfigurations", certs.Conversion.Kind: "customresourcedefinitions",
	}
	for _, spec := range componentSpecs(&Env{}) {
		for _, target := range spec.CABundleTargets {
			for _, verb := range []string{"get", "list", "patch", "watch"} {
				granted := slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
					return slices.Contains(rule.Resources, resources[target.Kind.Kind]) && slices.Contains(rule.Verbs, verb) &&
						(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, target.Name))
				})
				if !granted {
					t.Errorf("component %s: the manager must be allowed to %s %s %s to write its CA bundle", spec.Name, verb, target.Kind.Kind, target.Name)
				}
			}
		}
	}
	for _, rule := range role.Rules {
		if len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, "patch") && !slices.Contains(rule.Resources, "events") {
			t.Errorf("the rule allows to patch objects of any name: %+v", rule)
		}
	}
}

// Every generated CRD is installed.
func TestEveryCRDIsInstalled(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("unexpected files %v, error %v", files, err)
	}
	list, err := os.ReadFile("../../config/crd/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(string(list), "bases/"+filepath.Base(file)+"\n") {
			t.Errorf("%s is not installed", file)
		}
	}
}
