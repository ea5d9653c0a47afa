package modelregistry

import (
	"encoding/json"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// FuzzDefaultsAreIdempotent requires that the webhooks do not panic for any spec, that patches are valid and change only the spec, that
// defaults are idempotent, and that rejections have a message.
func FuzzDefaultsAreIdempotent(f *testing.F) {
	for _, spec := range []string{
		`{"rest":{},"grpc":{},"istio":{"gateway":{"rest":{"port":1,"tls":{}}}},"mysql":{}}`,
		`{"rest":{"image":"quay.io/opendatahub/model-registry:latest","resources":{"claims":[{"name":"x"}]}},"oauthProxy":{"image":"x"}}`,
		`{"rest":1,"postgres":[],"kubeRBACProxy":"x","unknown":{"a":[1.5,null]}}`, `{"postgres":{"host":"","port":5.0e3}}`, `[]`, `null`,
	} {
		f.Add([]byte(spec), []byte(`{"rest":{}}`), true)
	}
	f.Fuzz(func(t *testing.T, spec, oldSpec []byte, isAlpha bool) {
		apiVersion := beta
		if isAlpha {
			apiVersion = alpha
		}
		object, valid := registryOf(spec, apiVersion)
		old, oldValid := registryOf(oldSpec, apiVersion)
		if !valid || !oldValid {
			return
		}
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			checkDefaults(t, operation, object, old)
		}
	})
}

func registryOf(spec []byte, apiVersion string) (map[string]any, bool) {
	var content any
	if err := kjson.Unmarshal(spec, &content); err != nil {
		return nil, false
	}
	return map[string]any{
		"apiVersion": apiVersion, "kind": "ModelRegistry", "spec": content, "metadata": map[string]any{"name": "demo", "namespace": "ns", "finalizers": []any{v1beta1.Finalizer}},
	}, true
}

func checkDefaults(t *testing.T, operation admissionv1.Operation, object, old map[string]any) {
	t.Helper()
	original := runtime.DeepCopyJSON(object)
	d, v := &defaulter{source(settings(true))}, &validator{source(settings(true)), namespacesByName{}.find}
	r := request(t, operation, object, old)
	defaulted := applyPatch(t, r, d.Handle(t.Context(), r))
	if !reflect.DeepEqual(defaulted["metadata"], original["metadata"]) || defaulted["kind"] != "ModelRegistry" || defaulted["apiVersion"] != original["apiVersion"] {
		t.Errorf("the defaults changed more than the spec: %v", defaulted)
	}
	r = request(t, operation, defaulted, old)
	if response := d.Handle(t.Context(), r); len(response.Patches) > 0 {
		t.Errorf("got patch %v for the defaulted object %s, want none", response.Patches, mustJSON(t, defaulted))
	}
	if response := v.Handle(t.Context(), r); !response.Allowed && response.Result.Message == "" {
		t.Errorf("the rejection has no message: %+v", response)
	}
}

// FuzzConversionReview requires valid JSON for every object of a review that is converted.
func FuzzConversionReview(f *testing.F) {
	f.Add([]byte(`{"spec":{"rest":{},"grpc":{}}}`), alpha)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod"}`), beta)
	f.Add([]byte(`[`), "x")
	f.Fuzz(func(t *testing.T, raw []byte, version string) {
		converted, err := convertRaw(raw, version)
		if err == nil && !json.Valid(converted) {
			t.Errorf("the conversion is not valid JSON: %s", converted)
		}
	})
}
