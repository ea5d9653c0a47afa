package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWebhooks(t *testing.T) {
	hooks, err := sourcesOf(t).webhooks()
	if err != nil {
		t.Fatal(err)
	}
	if len(hooks) != 3 {
		t.Fatalf("unexpected hooks: %+v", hooks)
	}
	for i, want := range []struct {
		name, path string
		kind       v1alpha1.WebhookAdmissionType
	}{
		{"first.mthing.example.org", "/mutate", v1alpha1.MutatingAdmissionWebhook},
		{"things.vthing.example.org", "/validate", v1alpha1.ValidatingAdmissionWebhook},
		{"convert.things.example.org", "/convert", v1alpha1.ConversionWebhook},
	} {
		h := hooks[i]
		if h.GenerateName != want.name || *h.WebhookPath != want.path || h.Type != want.kind {
			t.Errorf("got %+v, want %+v", h, want)
		}
		if h.DeploymentName != "the.manager" || h.ContainerPort != 443 || h.TargetPort.IntValue() != 9443 || !slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) {
			t.Errorf("got %+v, want port 443 with target 9443 of the.manager, and AdmissionReview v1", h)
		}
		if *h.SideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s: got side effects %s, want None", h.GenerateName, *h.SideEffects)
		}
	}
	if *hooks[0].ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy || hooks[1].ReinvocationPolicy != nil || *hooks[1].TimeoutSeconds != 5 {
		t.Errorf("unexpected hooks: %+v", hooks)
	}
	if *hooks[0].FailurePolicy != admissionregistrationv1.Fail || len(hooks[0].Rules) != 1 || hooks[1].Rules[0].Operations[1] != admissionregistrationv1.Update {
		t.Errorf("unexpected hooks: %+v", hooks)
	}
	if !slices.Equal(hooks[2].ConversionCRDs, []string{"things.example.org"}) || hooks[0].ConversionCRDs != nil {
		t.Errorf("unexpected conversion webhook: %+v", hooks[2])
	}
}

func TestWebhooksThatOLMCannotCreate(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"{name: hooks, namespace: here, path: /mutate}", "{name: hooks, namespace: here}", "webhook mthing.example.org has no Service with a path"},
		{"{service: {name: hooks, namespace: here, path: /validate}}", "{url: \"https://example.org\"}", "webhook vthing.example.org has no Service with a path"},
		{"timeoutSeconds: 5", "namespaceSelector: {matchLabels: {a: b}}", "webhook vthing.example.org has a namespaceSelector"},
		{"name: vthing.example.org", "name: v" + strings.Repeat("x", 50) + ".example.org", "has more than 63 characters"},
		{"{name: webhook, containerPort: 9443}", "{name: hooks, containerPort: 9443}", "Deployment the.manager has no port named webhook"},
	} {
		if _, err := sourcesOf(t, c.old, c.new).webhooks(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.new, err, c.want)
		}
	}
}

// The API server calls mutating webhooks in the order of the names of their configurations, and OLM names a configuration after its
// webhook. The webhooks of AppWrappers and RayClusters must precede those of Kueue.
func TestWebhooksPrecedeThoseOfKueue(t *testing.T) {
	in := shippedInput(t)
	hooks, err := in.sources.webhooks()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, h := range hooks {
		path := ""
		if h.WebhookPath != nil {
			path = *h.WebhookPath
		}
		if h.Type == v1alpha1.MutatingAdmissionWebhook && (strings.Contains(path, "appwrapper") || strings.Contains(path, "raycluster")) {
			found++
			if h.GenerateName >= "kueue-mutating-webhook-configuration" {
				t.Errorf("%s sorts after the webhooks of Kueue", h.GenerateName)
			}
		}
	}
	if found != 2 {
		t.Errorf("got %d mutating webhooks of appwrapper and raycluster, want 2", found)
	}
}

// The generateName of each webhook is unique, because OLM finds its configuration by a label with this value.
func TestNamesOfWebhooksAreUnique(t *testing.T) {
	hooks, err := shippedInput(t).sources.webhooks()
	if err != nil || len(hooks) < 8 {
		t.Fatalf("got %d webhooks and error %v, want at least 8", len(hooks), err)
	}
	seen := map[string]bool{}
	for _, h := range hooks {
		if seen[h.GenerateName] || strings.Count(h.GenerateName, ".") < 2 {
			t.Errorf("%s: listed twice, or without a domain", h.GenerateName)
		}
		seen[h.GenerateName] = true
	}
}

func TestSetConversionService(t *testing.T) {
	for _, d := range sourcesOf(t).crds {
		if err := setConversionService(d.object, "the.manager"); err != nil {
			t.Fatal(err)
		}
		name, found, _ := unstructured.NestedString(d.object.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
		path, _, _ := unstructured.NestedString(d.object.Object, "spec", "conversion", "webhook", "clientConfig", "service", "path")
		if converted := d.crd.Name == "things.example.org"; found != converted || converted && (name != "the-manager-service" || path != "/convert") {
			t.Errorf("%s: unexpected Service %s or path %s of the conversion webhook", d.crd.Name, name, path)
		}
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"conversion": "None"}}}
	if err := setConversionService(broken, "m"); err == nil {
		t.Error("want an error for a conversion that is not an object")
	}
}
