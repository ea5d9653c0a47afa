package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

// readManifests decodes the documents of a file below config into objects of one type.
func readManifests[T any](t *testing.T, path string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", path))
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []T
	for {
		var one T
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: unexpected error: %v", path, err)
		}
		all = append(all, one)
	}
}

// The webhook configurations match the served paths, have the names that clients expect, and precede those of Kueue.
func TestWebhookManifestsOfAppWrapper(t *testing.T) {
	mutating := readManifests[admissionregistrationv1.MutatingWebhookConfiguration](t, "webhook/appwrapper/configurations.yaml")[0]
	validating := readManifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, "webhook/appwrapper/configurations.yaml")[1]
	targets := appWrapperSpec(&Env{}).CABundleTargets
	if mutating.Name != webhook.MutatingConfiguration || validating.Name != webhook.ValidatingConfiguration ||
		targets[0].Name != mutating.Name || targets[1].Name != validating.Name {
		t.Errorf("configurations %s and %s do not match the CA bundle targets %v", mutating.Name, validating.Name, targets)
	}
	for _, name := range []string{mutating.Name, validating.Name} {
		if name >= "kueue-" {
			t.Errorf("%s sorts after the webhooks of Kueue", name)
		}
	}
	m, v := mutating.Webhooks[0], validating.Webhooks[0]
	if m.Name != "mappwrapper.kb.io" || v.Name != "vappwrapper.kb.io" || *m.FailurePolicy != "Fail" || *v.FailurePolicy != "Fail" ||
		*m.SideEffects != "None" || *v.SideEffects != "None" || m.NamespaceSelector != nil || v.NamespaceSelector != nil {
		t.Errorf("unexpected webhooks:\n%+v\n%+v", m, v)
	}
	if *m.ClientConfig.Service.Path != webhook.MutatePath || *v.ClientConfig.Service.Path != webhook.ValidatePath ||
		m.ClientConfig.Service.Name != webhookService || v.ClientConfig.Service.Name != webhookService {
		t.Errorf("unexpected Services of the webhooks:\n%+v\n%+v", m.ClientConfig.Service, v.ClientConfig.Service)
	}
	if len(m.Rules[0].Operations) != 1 || m.Rules[0].Operations[0] != "CREATE" ||
		!slices.Equal(v.Rules[0].Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}) {
		t.Errorf("unexpected operations %v and %v", m.Rules[0].Operations, v.Rules[0].Operations)
	}
	if service := readManifests[corev1.Service](t, "manager/webhook_service.yaml")[0]; service.Name != webhookService || service.Spec.Ports[0].Port != 443 {
		t.Errorf("unexpected service: %+v", service)
	}
}

// [D33] The manifests have the correct names that the legacy operator misspelled.
func TestManifestsOfAppWrapper(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range readManifests[rbacv1.ClusterRole](t, "rbac/appwrapper/user_roles.yaml") {
		roles[role.Name] = role.Rules
	}
	var resources []string
	for _, rule := range roles["appwrapper-user-role"] {
		resources = append(resources, rule.Resources...)
	}
	if !slices.Equal(resources, []string{"appwrappers", "appwrappers/status", "appwrappers/finalizers"}) {
		t.Errorf("the user role has resources %v, want %v", resources, []string{"appwrappers", "appwrappers/status", "appwrappers/finalizers"})
	}
	if len(roles["codeflare-operator-appwrapper-editor-role"]) != 2 || len(roles["codeflare-operator-viewer-role"]) != 2 {
		t.Errorf("got roles %v, want two rules for the editor and viewer roles of CodeFlare", roles)
	}
	sample := readManifests[corev1.ConfigMap](t, "samples/kube-state-metrics/appwrapper.yaml")[0].Data["appwrapper-ksm.yaml"]
	var metrics map[string]any
	if err := yaml.Unmarshal([]byte(sample), &metrics); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sample, "path: [status, resettingCount]") {
		t.Error("the configuration of kube-state-metrics does not read status.resettingCount")
	}
	// The Role allows reading only the ConfigMaps of legacy operators.
	rule := readManifests[rbacv1.Role](t, "rbac/appwrapper/older_config.yaml")[0].Rules[0]
	var names []string
	for _, o := range kinds.LegacyConfigs {
		names = append(names, o.Name)
	}
	if !slices.Equal(rule.ResourceNames, names) || !slices.Equal(rule.Verbs, []string{"get"}) {
		t.Errorf("unexpected rule: %+v", rule)
	}
	secretRule := readManifests[rbacv1.Role](t, "rbac/manager/webhook_certificate.yaml")[0].Rules[1]
	if !slices.Equal(secretRule.ResourceNames, []string{webhookSecret}) {
		t.Errorf("got rule %+v, want it limited to Secret %s", secretRule, webhookSecret)
	}
}
