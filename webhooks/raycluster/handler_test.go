package raycluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

func handlers(s settingsFunc) map[string]admission.Handler {
	return map[string]admission.Handler{"mutating": &defaulter{s}, "validating": &validator{s}}
}

// [R23] [R29] Terminating clusters and clusters with another manager are ignored.
func TestIgnoredClusters(t *testing.T) {
	multiKueue := put("kueue.x-k8s.io/multikueue", "spec", "managedBy")
	terminating := put("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	invalid := put(true, "spec", "headGroupSpec", "enableIngress")
	for name, test := range map[string]struct{ object, old map[string]any }{
		"create of a cluster managed by MultiKueue": {parse(t, noHeadContainer, multiKueue, invalid), nil},
		"update of a cluster managed by MultiKueue": {parse(t, noHeadContainer, multiKueue, invalid), parse(t, minimal, multiKueue)},
		"terminating":            {parse(t, noHeadContainer, terminating, invalid), parse(t, minimal, terminating)},
		"terminating, malformed": {parse(t, "metadata: {deletionTimestamp: x}\nspec: {workerGroupSpecs: 5}"), parse(t, minimal, terminating)},
	} {
		for webhook, handler := range handlers(onOpenShift().source) {
			if response := handler.Handle(t.Context(), requestOf(t, test.object, test.old)); !response.Allowed || len(response.Patches) > 0 || len(response.Warnings) > 0 {
				t.Errorf("%s, %s: want an unchanged object, got %+v", name, webhook, response)
			}
		}
	}
	// A deletionTimestamp in a new cluster does not count; the API server removes it, but only after mutating admission.
	if got := applyDefaults(t, onOpenShift(), parse(t, minimal, terminating), nil); !raycluster.View(got).HasHashedNames() {
		t.Error("a deletionTimestamp in the request prevented the defaults")
	}
}

func TestMalformedRequestsAreRejected(t *testing.T) {
	for webhook, handler := range handlers(onOpenShift().source) {
		for _, raw := range []string{"[", "null", "5", ""} {
			request := requestOf(t, parse(t, minimal), nil)
			request.Object = runtime.RawExtension{Raw: []byte(raw)}
			if response := handler.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("%s %q: want a bad request, got %+v", webhook, raw, response)
			}
			request = requestOf(t, parse(t, minimal), parse(t, minimal))
			request.OldObject = runtime.RawExtension{Raw: []byte(raw)}
			if response := handler.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("%s, old object %q: want a bad request, got %+v", webhook, raw, response)
			}
		}
		for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
			request := requestOf(t, parse(t, minimal), nil)
			request.Operation, request.Object = operation, runtime.RawExtension{}
			if response := handler.Handle(t.Context(), request); !response.Allowed || len(response.Patches) > 0 {
				t.Errorf("%s %s: want an unchanged object, got %+v", webhook, operation, response)
			}
		}
	}
}

// The mutating webhook does not change an object with a value of an unexpected type, and the validating webhook rejects it with the field.
func TestShapeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                        "metadata: Required value: must be an object",
		"spec: 5":                   `spec: Invalid value: "number": must be an object`,
		"spec: {headGroupSpec: []}": "spec.headGroupSpec",
		"spec: {headGroupSpec: {template: {spec: {containers: {}}}}}":         `spec.headGroupSpec.template.spec.containers: Invalid value: "object": must be a list`,
		"spec: {headGroupSpec: {template: {spec: {containers: [text]}}}}":     "spec.headGroupSpec.template.spec.containers",
		"spec: {headGroupSpec: {template: {spec: {containers: [{env: x}]}}}}": "spec.headGroupSpec.template.spec.containers.env",
		"spec: {headGroupSpec: {template: {spec: {serviceAccountName: 5}}}}":  "spec.headGroupSpec.template.spec.serviceAccountName",
		"spec: {workerGroupSpecs: [{}, 7]}":                                   "spec.workerGroupSpecs",
		"spec: {workerGroupSpecs: [{template: {spec: {volumes: [true]}}}]}":   "spec.workerGroupSpecs.template.spec.volumes",
		"spec: {autoscalerOptions: {env: {}}}":                                "spec.autoscalerOptions.env",
		"metadata: {annotations: []}":                                         "metadata.annotations",
	} {
		object := parse(t, text)
		if object["metadata"] == nil && text != "{}" {
			put("a", "metadata", "name")(object)
		}
		if diff := cmp.Diff(object, applyDefaults(t, onOpenShift(), object, nil)); diff != "" {
			t.Errorf("%s: the malformed object was changed (-want +got):\n%s", text, diff)
		}
		response := validateObject(t, onOpenShift(), object, nil)
		if response.Allowed || !strings.Contains(response.Result.Message, want) {
			t.Errorf("%s: unexpected response.Result: %+v", text, response.Result)
		}
		// If the stored object has such a value, its injections are not kept, but its naming scheme is.
		updated := applyDefaults(t, onOpenShift(), parse(t, minimal), object)
		if raycluster.View(updated).HasHashedNames() {
			t.Errorf("%s: an update changed legacy names to hashed names", text)
		}
		expectAllowed(t, onOpenShift(), updated, object)
	}
}

func TestRequestsFailWithoutSettings(t *testing.T) {
	broken := Options{Settings: func(context.Context) (config.RayCluster, error) {
		return config.RayCluster{}, errors.New("no such key")
	}}
	for webhook, handler := range handlers(broken.settings) {
		response := handler.Handle(t.Context(), requestOf(t, parse(t, minimal), nil))
		if response.Allowed || response.Result.Code != http.StatusInternalServerError || response.Result.Message != "the settings of the component raycluster: no such key" {
			t.Errorf("%s: unexpected response: %+v", webhook, response)
		}
	}
}

// R4, [raycluster-4] [raycluster-32]: the settings are those of the component for the platform, with the ingress domain and the version.
func TestSettings(t *testing.T) {
	options := Options{
		Settings: func(context.Context) (config.RayCluster, error) { return config.DefaultRayCluster(), nil },
		Served: func() capability.Set {
			return capability.NewSet(capability.OpenShiftIngress, capability.Route, capability.UserGroup)
		},
		Domain: func() string { return "d" }, Version: "v",
	}
	got, err := options.settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{RayCluster: config.DefaultRayCluster().ForPlatform(true), Platform: raycluster.Platform{OpenShift: true, OAuthServer: true}, Domain: "d", Version: "v"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	options.Served, options.Domain = func() capability.Set { return capability.Set{} }, func() string { return "" }
	options.Settings = func(context.Context) (config.RayCluster, error) {
		return config.RayCluster{Exposure: config.Exposure{Kind: config.ExposeIngress, IngressDomain: "apps.example.org"}}, nil
	}
	if got, _ := options.settings(t.Context()); got.OpenShift || got.Domain != "apps.example.org" {
		t.Errorf("got %+v, want the settings without OpenShift and with the domain", got)
	}
}

func TestDisabledComponentAllowsWithWarning(t *testing.T) {
	response := disabledHandler.Handle(t.Context(), requestOf(t, parse(t, noHeadContainer), nil))
	if !response.Allowed || len(response.Patches) > 0 || len(response.Warnings) != 1 || response.Warnings[0] != string(disabledHandler) {
		t.Errorf("unexpected response: %+v", response)
	}
}

// The patch replaces single values, and is empty for an object that has all injections.
func TestPatchesAreSmall(t *testing.T) {
	s := onOpenShift()
	complete := applyDefaults(t, s, parse(t, full), nil)
	if response := (&defaulter{s.source}).Handle(t.Context(), requestOf(t, complete, complete)); len(response.Patches) > 0 {
		t.Errorf("unexpected patches: %s", response.Patches)
	}
	broken := copyOf(complete, changeOf(in(worker0, "containers", "0", "env"), "RAY_USE_TLS", set("0", "value")))
	response := (&defaulter{s.source}).Handle(t.Context(), requestOf(t, broken, complete))
	want := []jsonpatch.Operation{{Operation: "replace", Path: "/spec/workerGroupSpecs/0/template/spec/containers/0/env/2/value", Value: "1"}}
	if diff := cmp.Diff(want, response.Patches); diff != "" {
		t.Error(diff)
	}
}
