package render_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

var thing = schema.GroupVersionKind{Group: "test.io", Version: "v1", Kind: "Thing"}

// things renders a ConfigMap for each Thing, and modifies its argument.
func things() render.Kinds {
	return render.Kinds{thing: func(obj *unstructured.Unstructured, _ render.Env) (render.Result, error) {
		if obj.GetName() == "bad" {
			return render.Result{}, errors.New("boom")
		}
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		out.SetName(obj.GetName())
		obj.SetName("changed")
		return render.Result{Objects: []*unstructured.Unstructured{out}, Notes: []string{"one\ntwo", "three"}}, nil
	}}
}

func TestDocuments(t *testing.T) {
	objects, err := render.Documents(strings.NewReader("a: 1\nb: 1.5\n---\n# nothing\n---\n{\"c\": [2]}\n"))
	if err != nil || len(objects) != 2 {
		t.Fatalf("got %d objects and error %v, want 2 objects", len(objects), err)
	}
	if integer, ok := objects[0].Object["a"].(int64); !ok || integer != 1 {
		t.Errorf("a is not an int64: %#v", objects[0].Object)
	}
	if float, ok := objects[0].Object["b"].(float64); !ok || float != 1.5 {
		t.Errorf("b is not a float64: %#v", objects[0].Object)
	}
	for text, want := range map[string]string{
		"":                      "no custom resource",
		"# words\n---\n":        "no custom resource",
		"a: [":                  "document 1 is not valid YAML",
		"a: 1\n---\nb: 1\nb: 2": "document 2 is not valid YAML",
		"- a":                   "document 1 is not an object",
	} {
		if _, err := render.Documents(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
}

func TestKinds(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(thing)
	obj.SetName("a")
	result, err := things().Render(obj, render.Env{})
	if err != nil || len(result.Objects) != 1 || obj.GetName() != "a" {
		t.Errorf("got %+v and error %v, and name %s of the input, want one object and an unchanged input", result, err, obj.GetName())
	}
	obj.SetName("bad")
	if _, err := things().Render(obj, render.Env{}); err == nil || err.Error() != "rendering Thing bad: boom" {
		t.Errorf("got error %v, want 'rendering Thing bad: boom'", err)
	}
	obj.SetKind("Other")
	if _, err := things().Render(obj, render.Env{}); err == nil || err.Error() != "test.io/v1/Other cannot be rendered; known kinds: test.io/v1/Thing" {
		t.Errorf("unexpected error: %v", err)
	}
	more := things()
	more[thing.GroupVersion().WithKind("Another")] = more[thing]
	if got := more.Names(); !slices.Equal(got, []string{"test.io/v1/Another", "test.io/v1/Thing"}) {
		t.Errorf("Names: %q, want %q", got, []string{"test.io/v1/Another", "test.io/v1/Thing"})
	}
}

func TestRenderAllReadsStream(t *testing.T) {
	var out bytes.Buffer
	if err := things().RenderAll(strings.NewReader("{apiVersion: test.io/v1, kind: Thing, metadata: {name: a}}"), &out, render.Env{}); err != nil {
		t.Fatal(err)
	}
	want := "---\n# one\n# two\n# three\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	again, err := render.Documents(&out)
	if err != nil || len(again) != 1 {
		t.Errorf("reading the output: got %d objects and error %v, want one object", len(again), err)
	}
	for name, text := range map[string]string{"invalid object": "{apiVersion: test.io/v1, kind: Thing, metadata: {name: bad}}", "no document": ""} {
		if err := things().RenderAll(strings.NewReader(text), &out, render.Env{}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// brokenPipe is a writer that always fails.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRenderAllReturnsWriteErrors(t *testing.T) {
	err := things().RenderAll(strings.NewReader("{apiVersion: test.io/v1, kind: Thing, metadata: {name: a}}"), brokenPipe{}, render.Env{})
	if err == nil || !strings.Contains(err.Error(), "writing the objects of Thing a: broken pipe") {
		t.Errorf("got error %v, want one containing 'writing the objects of Thing a: broken pipe'", err)
	}
}

func TestEachPlatformServesMoreThanThePrevious(t *testing.T) {
	var before capability.Set
	for i, name := range render.Platforms() {
		served, err := render.Platform(name)
		if err != nil {
			t.Fatal(err)
		}
		if !served.HasAll(before.UnsortedList()...) || i > 0 && served.Equal(before) {
			t.Errorf("%s does not serve all kinds of the previous platform and others", name)
		}
		if served.IsOpenShift() != (name == "openshift") {
			t.Errorf("%s: IsOpenShift() returned %t", name, served.IsOpenShift())
		}
		before = served
	}
	if _, err := render.Platform(render.DefaultPlatform); err != nil {
		t.Error(err)
	}
	if _, err := render.Platform("mars"); err == nil || err.Error() != `unknown platform "mars"; known platforms: bare, plain, openshift` {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestSettingsFromConfigMaps(t *testing.T) {
	env := render.Env{Config: config.Config{OperatorNamespace: "home"}}
	env.Config.ModelMesh.Namespace = "home"
	if legacyConfig := env.LegacyConfig("a", true); legacyConfig != nil {
		t.Errorf("got %+v without a cluster, want nil", legacyConfig)
	}
	if s, notes, err := env.ModelMesh("team"); err != nil || len(notes) > 0 || s.PodsPerRuntime != 2 {
		t.Errorf("without ConfigMaps: got %+v, notes %q and error %v, want 2 pods per runtime", s, notes, err)
	}
	stored := map[string]string{"home/model-serving-config": "podsPerRuntime: 3\nodd: 1", "team/model-serving-config": "podsPerRuntime: 4", "bad/model-serving-config": "podsPerRuntime: many"}
	env.ConfigMaps = func(namespace, name string) *corev1.ConfigMap {
		text, found := stored[namespace+"/"+name]
		if !found {
			return nil
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"config.yaml": text}}
	}
	legacyConfig := env.LegacyConfig("model-serving-config", true)
	if legacyConfig == nil || legacyConfig.Source != "ConfigMap home/model-serving-config" || !legacyConfig.Embedded || legacyConfig.Data["config.yaml"] == "" {
		t.Errorf("got %+v, want the embedded config.yaml of ConfigMap home/model-serving-config", legacyConfig)
	}
	for namespace, want := range map[string]int32{"home": 3, "team": 4, "other": 3} {
		s, notes, err := env.ModelMesh(namespace)
		if err != nil || s.PodsPerRuntime != want || len(notes) == 0 {
			t.Errorf("%s: got %d pods, notes %q and error %v, want %d pods and a note", namespace, s.PodsPerRuntime, notes, err, want)
		}
	}
	if _, _, err := env.ModelMesh("bad"); err == nil || !strings.Contains(err.Error(), "ConfigMap bad/model-serving-config") || !strings.Contains(err.Error(), "many") {
		t.Errorf("got error %v, want one that names the ConfigMap and the value", err)
	}
}

func TestEnsureNamespace(t *testing.T) {
	for name, tc := range map[string]struct{ given, caller, want string }{
		"namespace of the object": {"a", "b", "a"}, "namespace of the caller": {"", "b", "b"}, "default": {"", "", "default"},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetNamespace(tc.given)
		if got := (render.Env{Namespace: tc.caller}).EnsureNamespace(obj); got != tc.want || obj.GetNamespace() != tc.want {
			t.Errorf("%s: EnsureNamespace returned %q and set %q, want %q", name, got, obj.GetNamespace(), tc.want)
		}
	}
}
