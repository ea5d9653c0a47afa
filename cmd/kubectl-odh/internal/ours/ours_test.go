package ours

import (
	"maps"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// TestComponents holds the table against that of the manager.
func TestComponents(t *testing.T) {
	want := slices.Sorted(maps.Keys(kinds.ByComponent()))
	if got := slices.Sorted(slices.Values(Names())); !slices.Equal(got, want) {
		t.Errorf("got %q, the manager has %q", got, want)
	}
	for component, kinds := range kinds.ByComponent() {
		for kind := range kinds {
			if !LookedAfter(kind.GroupKind()) {
				t.Errorf("%s of component %s is not in the table", kind, component)
			}
		}
	}
	for _, c := range Components() {
		for _, required := range c.Requires {
			if !slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.GroupVersionKind == required }) {
				t.Errorf("%s requires %s and does not show it", c.Name, required)
			}
		}
		if c.Any && len(c.Requires) < 2 {
			t.Errorf("%s requires any of %d kinds", c.Name, len(c.Requires))
		}
	}
	if _, err := config.Load(config.Program{Components: Names(), MLflowVersion: "1"}, []string{"--components=*"}, func(string) (string, bool) { return "", false }, os.ReadFile); err != nil {
		t.Errorf("the settings do not know the components: %v", err)
	}
}

func TestLookedAfter(t *testing.T) {
	if LookedAfter(schema.GroupKind{Kind: "Pod"}) || !LookedAfter(schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}) {
		t.Error("kinds are taken for others")
	}
}

// TestWhichAreOurs tells ModelMesh's objects from KServe's.
func TestWhichAreOurs(t *testing.T) {
	filters := map[string]func(*unstructured.Unstructured) bool{}
	for _, c := range Components() {
		for _, k := range c.Kinds {
			filters[k.Kind] = k.Ours
		}
	}
	for name, c := range map[string]struct {
		kind string
		spec map[string]any
		mode string
		want bool
	}{
		"a runtime for many models":    {"ServingRuntime", map[string]any{"multiModel": true}, "", true},
		"a runtime for one model":      {"ServingRuntime", map[string]any{"multiModel": false}, "", false},
		"a runtime that does not say":  {"ClusterServingRuntime", map[string]any{}, "", false},
		"a runtime that says it oddly": {"ClusterServingRuntime", map[string]any{"multiModel": "true"}, "", false},
		"a model in the mesh":          {"InferenceService", nil, "ModelMesh", true},
		"a model of its own":           {"InferenceService", nil, "RawDeployment", false},
		"a model that says nothing":    {"InferenceService", nil, "", false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": c.kind, "spec": c.spec}}
		if c.mode != "" {
			u.SetAnnotations(map[string]string{"serving.kserve.io/deploymentMode": c.mode})
		}
		if got := filters[c.kind](u); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if filters["Predictor"] != nil || filters["MLflow"] != nil {
		t.Error("kinds that are ours alone are filtered")
	}
}
