package conversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

const seeds = 500

// checkFromV1beta1 requires that a round trip through v1alpha1 does not change a v1beta1 object.
func checkFromV1beta1(t *testing.T, seed int64) {
	t.Helper()
	registry := &v1beta1.ModelRegistry{}
	newFiller(seed).Fill(registry)
	stored := toUnstructured(t, registry, beta)
	served := convert(t, stored, alpha)
	if err := Check(served); err != nil {
		t.Errorf("seed %d: Check rejects the annotation: %v", seed, err)
	}
	// Clients of v1alpha1 decode the object into their Go type and send it back.
	typed := &v1alpha1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(served, typed); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	requireEqual(t, "v1alpha1 object encoded from its Go type", served, toUnstructured(t, typed, alpha))
	requireEqual(t, "v1beta1 object after the round trip", stored, convert(t, toUnstructured(t, typed, alpha), beta))
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// checkFromV1alpha1 requires that a round trip through v1beta1 does not change a v1alpha1 object, except that istio is replaced by a proxy.
func checkFromV1alpha1(t *testing.T, seed int64) {
	t.Helper()
	registry := &v1alpha1.ModelRegistry{}
	newFiller(seed).Fill(registry)
	served := toUnstructured(t, registry, alpha)
	stored := convert(t, served, beta)
	typed := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, typed); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	want := runtime.DeepCopyJSON(served)
	if spec, ok := want["spec"].(map[string]any); ok {
		ReplaceIstio(spec)
	}
	got := convert(t, encodeV1beta1(t, typed, stored), alpha)
	requireEqual(t, "v1alpha1 object after the round trip", want, got)
	requireEqual(t, "v1beta1 object after another conversion", stored, convert(t, got, beta))
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// encodeV1beta1 encodes a typed v1beta1 object with the empty database name of v1alpha1, which the Go type omits.
func encodeV1beta1(t *testing.T, typed *v1beta1.ModelRegistry, stored map[string]any) map[string]any {
	t.Helper()
	out := toUnstructured(t, typed, beta)
	if postgres := nestedMap(nestedMap(stored, "spec"), "postgres"); postgres != nil && postgres["database"] == "" {
		nestedMap(nestedMap(out, "spec"), "postgres")["database"] = ""
	}
	requireEqual(t, "v1beta1 object encoded from its Go type", stored, out)
	return out
}

func TestRoundTripsOfRandomObjects(t *testing.T) {
	for seed := range int64(seeds) {
		checkFromV1beta1(t, seed)
		checkFromV1alpha1(t, seed)
	}
}

func FuzzRoundTripFromV1beta1(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(checkFromV1beta1)
}

func FuzzRoundTripFromV1alpha1(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(checkFromV1alpha1)
}

// FuzzConvertAnything requires that the conversion of a ModelRegistry does not panic or fail for any JSON, and that a round trip does not change
// the v1beta1 spec of a v1alpha1 object.
func FuzzConvertAnything(f *testing.F) {
	f.Add([]byte(`{"spec":{"rest":{},"istio":{"gateway":{"rest":{"port":1,"tls":{}}}}},"metadata":{"annotations":{"x":"y"}}}`))
	f.Add([]byte(`{"spec":{"postgres":{"database":null},"oauthProxy":[],"grpc":1},"metadata":[]}`))
	f.Add([]byte(`{"spec":{"postgres":{}},"metadata":{"annotations":{"` + Annotation + `":"{\"proxy\":\"kubeRBACProxy\",\"postgres\":{\"image\":\"x\"}}"}}}`))
	f.Add([]byte(`{"spec":{"oauthProxy":null},"metadata":{"annotations":{"` + Annotation + `":"null"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var in map[string]any
		if err := kjson.Unmarshal(text, &in); err != nil || in == nil {
			return
		}
		in["kind"] = "ModelRegistry"
		for from, to := range map[string]string{alpha: beta, beta: alpha} {
			in["apiVersion"] = from
			first := convert(t, in, to)
			second := convert(t, convert(t, first, from), to)
			if to == beta {
				requireEqual(t, "spec after the round trip", first["spec"], second["spec"])
			}
		}
	})
}
