package conversion

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

var (
	alpha = v1alpha1.GroupVersion.String()
	beta  = v1beta1.GroupVersion.String()
)

// object returns an unstructured ModelRegistry with the given apiVersion and a spec in YAML.
func object(t *testing.T, apiVersion, spec string) map[string]any {
	t.Helper()
	return decodeYAML(t, "{apiVersion: "+apiVersion+", kind: ModelRegistry, metadata: {name: demo, namespace: ns}, spec: "+spec+"}")
}

func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := kjson.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func convert(t *testing.T, in map[string]any, version string) map[string]any {
	t.Helper()
	original := runtime.DeepCopyJSON(in)
	out, err := Convert(in, version)
	if err != nil {
		t.Fatal(err)
	}
	requireEqual(t, "input of Convert", original, in)
	return out
}

// newFiller returns a filler that fills objects with random content, like those of typed clients.
func newFiller(seed int64) *randfill.Filler {
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Name: "n", Namespace: "ns", Generation: c.Int63n(9)}
			if c.Bool() {
				m.Annotations = map[string]string{"free": randomString(c)}
			}
		},
		func(s *string, c randfill.Continue) { *s = randomString(c) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"100m", "1", "256Mi", "5Gi", "2500m"}[c.Intn(5)])
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(1<<32), 0) },
	)
}

func randomString(c randfill.Continue) string {
	return []string{"", "a", "db.example.com", "enabled", "{x: \"y\"}", "ü"}[c.Intn(6)]
}

// toUnstructured converts a typed object to an unstructured ModelRegistry with the given apiVersion.
func toUnstructured(t *testing.T, typed any, apiVersion string) map[string]any {
	t.Helper()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	out["apiVersion"], out["kind"] = apiVersion, "ModelRegistry"
	if metadata, ok := out["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return out
}

// addFieldPaths adds the paths of all fields of a schema, including inner ones, except those of list items.
func addFieldPaths(schema map[string]any, path string, into map[string]bool) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		childPath := strings.TrimPrefix(path+"."+name, ".")
		into[childPath] = true
		child, _ := properties[name].(map[string]any)
		addFieldPaths(child, childPath, into)
	}
}
