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

const validSpec = "{rest: {serviceRoute: disabled}, postgres: {host: db, username: u, database: d}}"

// The patch contains only changed fields.
func TestPatchesAreMinimal(t *testing.T) {
	d := &defaulter{source(settings(false))}
	r := request(t, admissionv1.Create, object(t, beta, "{rest: {unknown: {a: 1}}, postgres: {host: db}, unknown: [1, 2]}"), nil)
	response := d.Handle(t.Context(), r)
	if len(response.Patches) != 1 || response.Patches[0].Path != "/spec/rest/serviceRoute" || response.Patches[0].Operation != "add" {
		t.Errorf("unexpected patches: %+v", response.Patches)
	}
	want := object(t, beta, "{rest: {unknown: {a: 1}, serviceRoute: disabled}, postgres: {host: db}, unknown: [1, 2]}")
	requireEqual(t, "patched", want, applyPatch(t, r, response))
	for _, apiVersion := range []string{alpha, beta} {
		r = request(t, admissionv1.Create, object(t, apiVersion, validSpec), nil)
		if response := d.Handle(t.Context(), r); !response.Allowed || len(response.Patches) > 0 {
			t.Errorf("%s: got patches %+v for an object with all defaults, want none", apiVersion, response.Patches)
		}
	}
}

// The webhook adds the finalizer to new registries, and keeps other finalizers. It does not add the finalizer to existing registries.
func TestNewRegistriesGetTheFinalizer(t *testing.T) {
	d := &defaulter{source(settings(false))}
	for name, test := range map[string]struct {
		operation  admissionv1.Operation
		finalizers []any
		want       any
	}{
		"no finalizer":    {admissionv1.Create, nil, []any{v1beta1.Finalizer}},
		"other finalizer": {admissionv1.Create, []any{"example.com/keep"}, []any{"example.com/keep", v1beta1.Finalizer}},
		"update":          {admissionv1.Update, []any{"example.com/keep"}, []any{"example.com/keep"}},
	} {
		for _, apiVersion := range []string{alpha, beta} {
			m := object(t, apiVersion, validSpec)
			nestedMap(m, "metadata")["finalizers"] = test.finalizers
			if test.finalizers == nil {
				delete(nestedMap(m, "metadata"), "finalizers")
			}
			r := request(t, test.operation, m, m)
			requireEqual(t, name+" of "+apiVersion, test.want, nestedMap(applyPatch(t, r, d.Handle(t.Context(), r)), "metadata")["finalizers"])
		}
	}
}

// D3: updates of terminating registries are allowed, even without a database, and while the settings and other registries cannot be read.
func TestTerminatingObjectsAreAllowed(t *testing.T) {
	for _, apiVersion := range []string{alpha, beta} {
		old := object(t, apiVersion, "{rest: {}, grpc: {}}")
		nestedMap(old, "metadata")["deletionTimestamp"] = "2026-11-21T00:00:00Z"
		r := request(t, admissionv1.Update, object(t, apiVersion, "{rest: {}, grpc: {}}"), old)
		for name, handler := range map[string]admission.Handler{
			"defaulter": &defaulter{failingSource}, "validator": &validator{failingSource, failingFinder},
		} {
			if response := handler.Handle(t.Context(), r); !response.Allowed || len(response.Patches) > 0 {
				t.Errorf("%s of %s: unexpected response: %+v", name, apiVersion, response)
			}
		}
	}
	// The deletion timestamp of a new object is ignored, because a user can set it.
	forged := object(t, beta, "{rest: {}}")
	nestedMap(forged, "metadata")["deletionTimestamp"] = "2026-11-21T00:00:00Z"
	if response := (&validator{source(settings(false)), namespacesByName{}.find}).Handle(t.Context(), request(t, admissionv1.Create, forged, nil)); response.Allowed {
		t.Error("a registry without a database was allowed")
	}
}

func TestValidatorResponses(t *testing.T) {
	v := &validator{source(Settings{}), namespacesByName{"demo": {"elsewhere"}}.find}
	for name, test := range map[string]struct {
		object, old map[string]any
		want        string
	}{
		"duplicate name [modelregistry-13]":          {object(t, beta, validSpec), nil, `ModelRegistry.modelregistry.opendatahub.io "demo" is invalid: metadata.name: Duplicate value: "demo"`},
		"duplicate name, update":                     {object(t, beta, validSpec), object(t, beta, validSpec), ""},
		"no database":                                {object(t, beta, "{rest: {}}"), object(t, beta, validSpec), "spec.postgres: Required value"},
		"no database in v1alpha1 [modelregistry-17]": {object(t, alpha, "{rest: {}, grpc: {}}"), object(t, alpha, validSpec), "spec.mysql: Required value"},
		"host of a generated database":               {object(t, beta, "{rest: {}, postgres: {generateDeployment: true, host: h}}"), object(t, beta, validSpec), "spec.postgres.host"},
		"invalid host":                               {object(t, beta, "{rest: {}, postgres: {host: 'a b'}}"), object(t, beta, validSpec), "spec.postgres.host"},
		"invalid annotation":                         {annotated(t, "{"), object(t, alpha, validSpec), "metadata.annotations[" + conversion.Annotation + "]: Invalid value"},
		"annotation with an unknown retentionPolicy": {annotated(t, `{"postgres":{"retentionPolicy":"x"}}`), object(t, alpha, validSpec), "spec.postgres.retentionPolicy"},
		"v1alpha1 object [modelregistry-22]":         {object(t, alpha, validSpec), object(t, alpha, validSpec), ""},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Create
			if test.old != nil {
				operation = admissionv1.Update
			}
			response := v.Handle(t.Context(), request(t, operation, test.object, test.old))
			if test.want == "" {
				if !response.Allowed {
					t.Errorf("unexpected result: %+v", response.Result)
				}
				return
			}
			if response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid || response.Result.Code != http.StatusUnprocessableEntity ||
				!strings.Contains(response.Result.Message, test.want) {
				t.Errorf("unexpected result: %+v", response.Result)
			}
		})
	}
	// With a configured namespace, names in other namespaces are still looked up, because registries may be stored there.
	if response := (&validator{source(Settings{Namespace: "ns"}), failingFinder}).Handle(t.Context(), request(t, admissionv1.Create, object(t, beta, validSpec), nil)); response.Allowed {
		t.Error("the request was allowed, although registries of the same name cannot be listed")
	}
	// A registry outside of the configured namespace can be updated, because the setting may have changed.
	otherNamespace := &validator{source(Settings{Namespace: "other"}), failingFinder}
	if response := otherNamespace.Handle(t.Context(), request(t, admissionv1.Update, object(t, beta, validSpec), object(t, beta, validSpec))); !response.Allowed {
		t.Errorf("unexpected result: %+v", response.Result)
	}
	handler := &validator{source(Settings{Namespace: "ns"}), func(context.Context, string) ([]string, error) { return nil, nil }}
	if response := handler.Handle(t.Context(), request(t, admissionv1.Create, object(t, beta, validSpec), nil)); !response.Allowed {
		t.Errorf("unexpected result: %+v", response.Result)
	}
	withoutNamespace := object(t, beta, validSpec)
	delete(nestedMap(withoutNamespace, "metadata"), "namespace")
	if response := handler.Handle(t.Context(), request(t, admissionv1.Create, withoutNamespace, nil)); !response.Allowed {
		t.Errorf("the namespace of the request was ignored: %+v", response.Result)
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

// Objects of other kinds and versions, and objects that cannot be decoded, are rejected with code 400.
func TestOtherKindsAreErrors(t *testing.T) {
	valid := object(t, beta, validSpec)
	for name, test := range map[string]struct{ object, old map[string]any }{
		"another kind":       {decodeYAML(t, "{apiVersion: "+beta+", kind: Catalog}"), nil},
		"another version":    {decodeYAML(t, "{apiVersion: modelregistry.opendatahub.io/v2, kind: ModelRegistry}"), nil},
		"another old object": {valid, decodeYAML(t, "{apiVersion: v1, kind: Pod}")},
	} {
		operation := admissionv1.Create
		if test.old != nil {
			operation = admissionv1.Update
		}
		r := request(t, operation, test.object, test.old)
		for _, handler := range []admission.Handler{&defaulter{source(Settings{})}, &validator{source(Settings{}), namespacesByName{}.find}} {
			if response := handler.Handle(t.Context(), r); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("%s: unexpected response: %+v", name, response)
			}
		}
	}
	invalidJSON := request(t, admissionv1.Create, valid, nil)
	invalidJSON.Object.Raw = []byte("[")
	if response := (&defaulter{source(Settings{})}).Handle(t.Context(), invalidJSON); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
	v := &validator{source(Settings{}), namespacesByName{}.find}
	invalidType := object(t, beta, "{rest: {port: x}, postgres: {host: h}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Create, invalidType, nil)); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, valid, invalidType)); response.Result.Code != http.StatusBadRequest {
		t.Errorf("unexpected response: %+v", response)
	}
}

func TestErrorsDenyRequests(t *testing.T) {
	r := request(t, admissionv1.Create, object(t, beta, validSpec), nil)
	for name, handler := range map[string]admission.Handler{
		"defaulter": &defaulter{failingSource}, "validator": &validator{failingSource, namespacesByName{}.find}, "other registries": &validator{source(Settings{}), failingFinder},
		"catalog": &catalogValidator{failingSource, namespacesByName{}.find},
	} {
		if response := handler.Handle(t.Context(), r); response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "unavailable") {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
	deletion := request(t, admissionv1.Delete, nil, nil)
	for _, handler := range []admission.Handler{&defaulter{failingSource}, &validator{failingSource, failingFinder}, &catalogValidator{failingSource, failingFinder}} {
		if response := handler.Handle(t.Context(), deletion); !response.Allowed {
			t.Errorf("the deletion was rejected: %+v", response)
		}
	}
	if response := (pkgadmission.DisabledComponent("disabled")).Handle(t.Context(), r); !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("unexpected response: %+v", response)
	}
}

func TestNewCatalogsAreValidated(t *testing.T) {
	for _, test := range []struct {
		name, setting, want string
		others              namespacesByName
	}{
		{"catalog", "", "", namespacesByName{}},                                                                                                  // [modelregistry-73]
		{"catalog", "ns", "", namespacesByName{"catalog": {"elsewhere"}}},                                                                        // [modelregistry-73]
		{"other", "", "metadata.name: Invalid value: \"other\": catalog resource name must be 'catalog'", nil},                                   // [modelregistry-72]
		{"catalog", "registries", "metadata.namespace: Invalid value: \"ns\": namespace must be registries", nil},                                // [modelregistry-74]
		{"catalog", "", "a cluster has only one Catalog, which exists in namespace elsewhere", namespacesByName{"catalog": {"ns", "elsewhere"}}}, // D23
		{"catalog", "", "looking for another Catalog: unavailable", nil},
	} {
		others := test.others.find
		if strings.HasSuffix(test.want, "unavailable") {
			others = failingFinder
		}
		v := &catalogValidator{source(Settings{Namespace: test.setting}), others}
		r := request(t, admissionv1.Create, nil, nil)
		r.Name = test.name
		response := v.Handle(t.Context(), r)
		if response.Allowed != (test.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, test.want) {
			t.Errorf("%s: got result %+v, want message %q", test.name, response.Result, test.want)
		}
		r.Operation = admissionv1.Update
		if response := v.Handle(t.Context(), r); !response.Allowed {
			t.Errorf("%s: the update was rejected: %+v", test.name, response.Result)
		}
	}
}
