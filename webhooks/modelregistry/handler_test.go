package modelregistry

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const goodSpec = "{rest: {serviceRoute: disabled}, postgres: {host: db, username: u, database: d}}"

// The patch contains only changed fields.
func TestPatchesAreMinimal(t *testing.T) {
	d := &defaulter{source(settings(false))}
	r := request(t, admissionv1.Create, object(t, beta, "{rest: {tomorrow: {a: 1}}, postgres: {host: db}, tomorrow: [1, 2]}"), nil)
	response := d.Handle(t.Context(), r)
	if len(response.Patches) != 1 || response.Patches[0].Path != "/spec/rest/serviceRoute" || response.Patches[0].Operation != "add" {
		t.Errorf("unexpected response.Patches: %+v", response.Patches)
	}
	want := object(t, beta, "{rest: {tomorrow: {a: 1}, serviceRoute: disabled}, postgres: {host: db}, tomorrow: [1, 2]}")
	requireEqual(t, "patched", want, applyPatch(t, r, response))
	for _, apiVersion := range []string{alpha, beta} {
		r = request(t, admissionv1.Create, object(t, apiVersion, goodSpec), nil)
		if response := d.Handle(t.Context(), r); !response.Allowed || len(response.Patches) > 0 {
			t.Errorf("%s: nothing to do, and yet %+v", apiVersion, response.Patches)
		}
	}
}

// A new registry has the finalizer from the start, and keeps those of others. A stored one gets it from the controller.
func TestNewRegistriesGetTheFinalizer(t *testing.T) {
	d := &defaulter{source(settings(false))}
	for name, c := range map[string]struct {
		operation admissionv1.Operation
		given     []any
		want      any
	}{
		"none":    {admissionv1.Create, nil, []any{v1beta1.Finalizer}},
		"another": {admissionv1.Create, []any{"example.com/keep"}, []any{"example.com/keep", v1beta1.Finalizer}},
		"updated": {admissionv1.Update, []any{"example.com/keep"}, []any{"example.com/keep"}},
	} {
		for _, apiVersion := range []string{alpha, beta} {
			given := object(t, apiVersion, goodSpec)
			nestedMap(given, "metadata")["finalizers"] = c.given
			if c.given == nil {
				delete(nestedMap(given, "metadata"), "finalizers")
			}
			r := request(t, c.operation, given, given)
			requireEqual(t, name+" of "+apiVersion, c.want, nestedMap(applyPatch(t, r, d.Handle(t.Context(), r)), "metadata")["finalizers"])
		}
	}
}

// The deletion of a registry depends on no rule, D3: neither on its namespace, nor on a database or settings.
func TestTerminatingObjectsAreAllowed(t *testing.T) {
	for _, apiVersion := range []string{alpha, beta} {
		old := object(t, apiVersion, "{rest: {}, grpc: {}}")
		nestedMap(old, "metadata")["deletionTimestamp"] = "2026-11-21T00:00:00Z"
		r := request(t, admissionv1.Update, object(t, apiVersion, "{rest: {}, grpc: {}}"), old)
		for name, handler := range map[string]admission.Handler{
			"defaulter": &defaulter{failingSource}, "validator": &validator{failingSource, failingFinder},
		} {
			if response := handler.Handle(t.Context(), r); !response.Allowed || len(response.Patches) > 0 {
				t.Errorf("%s of %s: %+v", name, apiVersion, response)
			}
		}
	}
	// A deletion timestamp on a new object is the user's word.
	forged := object(t, beta, "{rest: {}}")
	nestedMap(forged, "metadata")["deletionTimestamp"] = "2026-11-21T00:00:00Z"
	if response := (&validator{source(settings(false)), registriesByName{}.find}).Handle(t.Context(), request(t, admissionv1.Create, forged, nil)); response.Allowed {
		t.Error("a registry without a database was allowed")
	}
}

func TestValidatorAnswers(t *testing.T) {
	v := &validator{source(Settings{}), registriesByName{"demo": {"elsewhere"}}.find}
	for name, c := range map[string]struct {
		object, old map[string]any
		want        string
	}{
		"another of its name [modelregistry-13]":     {object(t, beta, goodSpec), nil, `ModelRegistry.modelregistry.opendatahub.io "demo" is invalid: metadata.name: Duplicate value: "demo"`},
		"another of its name, updated":               {object(t, beta, goodSpec), object(t, beta, goodSpec), ""},
		"no database":                                {object(t, beta, "{rest: {}}"), object(t, beta, goodSpec), "spec.postgres: Required value"},
		"no database in v1alpha1 [modelregistry-17]": {object(t, alpha, "{rest: {}, grpc: {}}"), object(t, alpha, goodSpec), "spec.mysql: Required value"},
		"the host of a generated database":           {object(t, beta, "{rest: {}, postgres: {generateDeployment: true, host: h}}"), object(t, beta, goodSpec), "spec.postgres.host"},
		"invalid host":                               {object(t, beta, "{rest: {}, postgres: {host: 'a b'}}"), object(t, beta, goodSpec), "spec.postgres.host"},
		"an annotation that cannot be read":          {annotated(t, "{"), object(t, alpha, goodSpec), "metadata.annotations[" + conversion.Annotation + "]: Invalid value"},
		"annotation with an unknown retentionPolicy": {annotated(t, `{"postgres":{"retentionPolicy":"x"}}`), object(t, alpha, goodSpec), "spec.postgres.retentionPolicy"},
		"a v1alpha1 object [modelregistry-22]":       {object(t, alpha, goodSpec), object(t, alpha, goodSpec), ""},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Create
			if c.old != nil {
				operation = admissionv1.Update
			}
			response := v.Handle(t.Context(), request(t, operation, c.object, c.old))
			if c.want == "" {
				if !response.Allowed {
					t.Errorf("unexpected response.Result: %+v", response.Result)
				}
				return
			}
			if response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid || response.Result.Code != http.StatusUnprocessableEntity ||
				!strings.Contains(response.Result.Message, c.want) {
				t.Errorf("unexpected response.Result: %+v", response.Result)
			}
		})
	}
	// With a single namespace, names in others are still queried, because registries may be stored there.
	if response := (&validator{source(Settings{Namespace: "ns"}), failingFinder}).Handle(t.Context(), request(t, admissionv1.Create, object(t, beta, goodSpec), nil)); response.Allowed {
		t.Error("want the request rejected while registries of the same name cannot be listed")
	}
	// A registry stored in another namespace can change although the namespace of registries has moved.
	moved := &validator{source(Settings{Namespace: "other"}), failingFinder}
	if response := moved.Handle(t.Context(), request(t, admissionv1.Update, object(t, beta, goodSpec), object(t, beta, goodSpec))); !response.Allowed {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
	handler := &validator{source(Settings{Namespace: "ns"}), func(context.Context, string) ([]string, error) { return nil, nil }}
	if response := handler.Handle(t.Context(), request(t, admissionv1.Create, object(t, beta, goodSpec), nil)); !response.Allowed {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
	unnamed := object(t, beta, goodSpec)
	delete(nestedMap(unnamed, "metadata"), "namespace")
	if response := handler.Handle(t.Context(), request(t, admissionv1.Create, unnamed, nil)); !response.Allowed {
		t.Errorf("the namespace of the request counts: %+v", response.Result)
	}
	response := handler.Handle(t.Context(), request(t, admissionv1.Create, object(t, beta, "{rest: {}, grpc: {port: 1}, postgres: {host: h}}"), nil))
	if !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("unexpected response: %+v", response)
	}
}

func annotated(t *testing.T, text string) map[string]any {
	t.Helper()
	out := object(t, alpha, "{rest: {}, grpc: {}, postgres: {host: db, database: d}}")
	if err := unstructured.SetNestedField(out, text, "metadata", "annotations", conversion.Annotation); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOtherKindsAreErrors(t *testing.T) {
	good := object(t, beta, goodSpec)
	for name, c := range map[string]struct{ object, old map[string]any }{
		"another kind":       {decodeYAML(t, "{apiVersion: "+beta+", kind: Catalog}"), nil},
		"another version":    {decodeYAML(t, "{apiVersion: modelregistry.opendatahub.io/v2, kind: ModelRegistry}"), nil},
		"another old object": {good, decodeYAML(t, "{apiVersion: v1, kind: Pod}")},
	} {
		operation := admissionv1.Create
		if c.old != nil {
			operation = admissionv1.Update
		}
		r := request(t, operation, c.object, c.old)
		for _, handler := range []admission.Handler{&defaulter{source(Settings{})}, &validator{source(Settings{}), registriesByName{}.find}} {
			if response := handler.Handle(t.Context(), r); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("%s: unexpected response: %+v", name, response)
			}
		}
	}
	broken := request(t, admissionv1.Create, good, nil)
	broken.Object.Raw = []byte("[")
	if response := (&defaulter{source(Settings{})}).Handle(t.Context(), broken); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
	v := &validator{source(Settings{}), registriesByName{}.find}
	wrong := object(t, beta, "{rest: {port: x}, postgres: {host: h}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Create, wrong, nil)); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, good, wrong)); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
}

func TestErrorsDenyRequests(t *testing.T) {
	r := request(t, admissionv1.Create, object(t, beta, goodSpec), nil)
	for name, handler := range map[string]admission.Handler{
		"defaulter": &defaulter{failingSource}, "validator": &validator{failingSource, registriesByName{}.find}, "others": &validator{source(Settings{}), failingFinder},
		"catalog": &catalogValidator{failingSource, registriesByName{}.find},
	} {
		if response := handler.Handle(t.Context(), r); response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "away") {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
	gone := request(t, admissionv1.Delete, nil, nil)
	for _, handler := range []admission.Handler{&defaulter{failingSource}, &validator{failingSource, failingFinder}, &catalogValidator{failingSource, failingFinder}} {
		if response := handler.Handle(t.Context(), gone); !response.Allowed {
			t.Errorf("deletion is allowed: %+v", response)
		}
	}
	if response := (pkgadmission.DisabledComponent("off")).Handle(t.Context(), r); !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("unexpected response: %+v", response)
	}
}

func TestHandleChecksNamespaceOfCatalogs(t *testing.T) {
	for _, c := range []struct {
		name, setting, want string
		others              registriesByName
	}{
		{"catalog", "", "", registriesByName{}},                                                                                                  // [modelregistry-73]
		{"catalog", "ns", "", registriesByName{"catalog": {"elsewhere"}}},                                                                        // [modelregistry-73]
		{"other", "", "metadata.name: Invalid value: \"other\": catalog resource name must be 'catalog'", nil},                                   // [modelregistry-72]
		{"catalog", "registries", "metadata.namespace: Invalid value: \"ns\": namespace must be registries", nil},                                // [modelregistry-74]
		{"catalog", "", "a cluster has only one Catalog, which exists in namespace elsewhere", registriesByName{"catalog": {"ns", "elsewhere"}}}, // D23
		{"catalog", "", "looking for another Catalog: away", nil},
	} {
		others := c.others.find
		if strings.HasSuffix(c.want, "away") {
			others = failingFinder
		}
		v := &catalogValidator{source(Settings{Namespace: c.setting}), others}
		r := request(t, admissionv1.Create, nil, nil)
		r.Name = c.name
		response := v.Handle(t.Context(), r)
		if response.Allowed != (c.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, c.want) {
			t.Errorf("%s: unexpected response.Result: %+v", c.name, response.Result)
		}
		r.Operation = admissionv1.Update
		if response := v.Handle(t.Context(), r); !response.Allowed {
			t.Errorf("%s: updates are always allowed, got %+v", c.name, response.Result)
		}
	}
}
