package main

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// The webhook configuration matches the served path. It has the name of the legacy configuration, which it replaces.
func TestWebhookManifestOfModelMesh(t *testing.T) {
	configuration := readManifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, "webhook/modelmesh/configurations.yaml")[0]
	if webhook.ValidatingConfiguration != "modelmesh-servingruntime.serving.kserve.io" || configuration.Name != webhook.ValidatingConfiguration || len(configuration.Webhooks) != 1 {
		t.Fatalf("unexpected configuration: %+v", configuration)
	}
	if configuration.Annotations[injectedByServiceCA] != "false" {
		t.Error("want injection by the OpenShift service CA disabled, because the manager injects its own CA")
	}
	h := configuration.Webhooks[0]
	if h.Name != "servingruntime.modelmesh-webhook-server.default" || h.ClientConfig.Service.Name != webhookService ||
		webhook.ValidatePath != "/validate-serving-modelmesh-io-v1alpha1-servingruntime" || *h.ClientConfig.Service.Path != webhook.ValidatePath {
		t.Errorf("unexpected name %s or Service %+v", h.Name, h.ClientConfig.Service)
	}
	if *h.FailurePolicy != "Fail" || *h.SideEffects != "None" || !slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) || h.NamespaceSelector != nil || h.ObjectSelector != nil {
		t.Errorf("got %+v, want failurePolicy Fail, no side effects, AdmissionReview v1 and no selectors", h)
	}
	want := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"serving.kserve.io"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"servingruntimes", "clusterservingruntimes"},
		},
	}
	if len(h.Rules) != 1 || !slices.Equal(h.Rules[0].Operations, want.Operations) || !slices.Equal(h.Rules[0].APIGroups, want.APIGroups) ||
		!slices.Equal(h.Rules[0].APIVersions, want.APIVersions) || !slices.Equal(h.Rules[0].Resources, want.Resources) {
		t.Errorf("unexpected Rules: %+v", h.Rules)
	}
	targets := modelMeshSpec(&Env{}).CABundleTargets
	if !slices.Equal(targets, []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}}) {
		t.Errorf("CA bundle targets %v, want %v", targets, []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}})
	}
}
