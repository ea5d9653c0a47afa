package conversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

const seeds = 500

// fromBeta checks that a v1beta1 object is unchanged by a round trip through v1alpha1.
func fromBeta(t *testing.T, seed int64) {
	t.Helper()
	registry := &v1beta1.ModelRegistry{}
	newFiller(seed).Fill(registry)
	stored := encoded(t, registry, beta)
	shown := convert(t, stored, alpha)
	if err := Check(shown); err != nil {
		t.Errorf("seed %d: what was written is refused: %v", seed, err)
	}
	// Older clients decode it into their type and send it back.
	older := &v1alpha1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shown, older); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	requireEqual(t, "the type of v1alpha1 knows every field", shown, encoded(t, older, alpha))
	requireEqual(t, "back in v1beta1", stored, convert(t, encoded(t, older, alpha), beta))
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// fromAlpha checks that a v1alpha1 object is unchanged by a round trip through v1beta1, except istio, which becomes a proxy.
func fromAlpha(t *testing.T, seed int64) {
	t.Helper()
	registry := &v1alpha1.ModelRegistry{}
	newFiller(seed).Fill(registry)
	shown := encoded(t, registry, alpha)
	stored := convert(t, shown, beta)
	newer := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, newer); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	want := runtime.DeepCopyJSON(shown)
	if spec, ok := want["spec"].(map[string]any); ok {
		ReplaceIstio(spec)
	}
	back := convert(t, encodedLike(t, newer, stored), alpha)
	requireEqual(t, "back in v1alpha1", want, back)
	requireEqual(t, "and once more", stored, convert(t, back, beta))
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// encodedLike encodes a typed v1beta1 object. The type omits an empty database name, which v1alpha1 sets.
func encodedLike(t *testing.T, newer *v1beta1.ModelRegistry, stored map[string]any) map[string]any {
	t.Helper()
	out := encoded(t, newer, beta)
	if postgres := block(block(stored, "spec"), "postgres"); postgres != nil && postgres["database"] == "" {
		block(block(out, "spec"), "postgres")["database"] = ""
	}
	requireEqual(t, "the type of v1beta1 knows every field", stored, out)
	return out
}

func TestRoundTripsOfRandomObjects(t *testing.T) {
	for seed := range int64(seeds) {
		fromBeta(t, seed)
		fromAlpha(t, seed)
	}
}

func FuzzRoundTripFromV1beta1(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(fromBeta)
}

func FuzzRoundTripFromV1alpha1(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(fromAlpha)
}

// FuzzConvertAnything checks that no JSON makes the conversion of a ModelRegistry panic or fail, and that the v1beta1 form of a
// v1alpha1 object is unchanged by a round trip.
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
			once := convert(t, in, to)
			again := convert(t, convert(t, once, from), to)
			if to == beta {
				requireEqual(t, "spec, stored twice", once["spec"], again["spec"])
			}
		}
	})
}
