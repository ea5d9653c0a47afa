package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
)

// live returns an object as the API server returns it.
func live(name, data string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": data}, "status": map[string]any{"seen": true},
	}}
	object.SetNamespace("ns")
	object.SetName(name)
	object.SetUID(types.UID("uid-" + data))
	object.SetResourceVersion("12")
	object.SetGeneration(3)
	object.SetCreationTimestamp(metav1.Now())
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "owner", UID: "random"}})
	return object
}

func TestNormalize(t *testing.T) {
	original := live("a", "x")
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "x"},
		"metadata": map[string]any{
			"namespace": "ns", "name": "a",
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Owner", "name": "owner"}},
		},
	}
	if difference := cmp.Diff(want, Normalize(original).Object); difference != "" {
		t.Error(difference)
	}
	if original.GetUID() != "uid-x" || original.GetOwnerReferences()[0].UID != "random" {
		t.Error("Normalize changed its argument")
	}
	twice := Normalize(Normalize(original))
	if difference := cmp.Diff(want, twice.Object); difference != "" {
		t.Error(difference)
	}
}

// recorder is a fake of testing.T.
type recorder struct{ failure string }

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "golden.yaml")
	objects := []*unstructured.Unstructured{live("b", "2"), live("a", "1")}
	var r recorder
	Golden(&r, path, objects)
	if !strings.Contains(r.failure, "-update") {
		t.Errorf("missing file: got failure %q, want a hint at -update", r.failure)
	}
	setUpdate(t, true)
	r = recorder{}
	Golden(&r, path, objects)
	setUpdate(t, false)
	if r.failure != "" {
		t.Fatal(r.failure)
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(content), "uid") || strings.Index(string(content), "name: a") > strings.Index(string(content), "name: b") {
		t.Errorf("got error %v, file\n%s\nwant a before b, without uid", err, content)
	}
	Golden(&r, path, []*unstructured.Unstructured{live("a", "1"), live("b", "2")})
	if r.failure != "" {
		t.Errorf("objects in another order differ: %s", r.failure)
	}
	Golden(&r, path, []*unstructured.Unstructured{live("a", "1")})
	if !strings.Contains(r.failure, "ns/b") {
		t.Errorf("the failure does not name the missing object: %q", r.failure)
	}
	r = recorder{}
	Golden(&r, path, []*unstructured.Unstructured{live("a", "1"), live("b", "3")})
	if !strings.Contains(r.failure, `"3"`) || !strings.Contains(r.failure, "golden.yaml differs") {
		t.Errorf("the failure does not show the changed value: %q", r.failure)
	}
}

func setUpdate(t *testing.T, value bool) {
	t.Helper()
	original := *update
	*update = value
	t.Cleanup(func() { *update = original })
}

// Numbers in a file have the same type as in objects from an API server.
func TestGoldenComparesNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numbers.yaml")
	object := live("a", "1")
	object.Object["spec"] = map[string]any{"replicas": int64(3), "ratio": 0.5, "ports": []any{int64(8443)}}
	setUpdate(t, true)
	var r recorder
	Golden(&r, path, []*unstructured.Unstructured{object})
	setUpdate(t, false)
	Golden(&r, path, []*unstructured.Unstructured{object})
	if r.failure != "" {
		t.Error(r.failure)
	}
	object.Object["spec"].(map[string]any)["replicas"] = int64(4)
	Golden(&r, path, []*unstructured.Unstructured{object})
	if !strings.Contains(r.failure, "replicas") {
		t.Errorf("the failure does not name the changed field: %q", r.failure)
	}
}

func TestWriteGoldenFailsBelowAFile(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeGolden(filepath.Join(blocked, "golden.yaml"), nil); err == nil {
		t.Error("want an error for writing below a file")
	}
}

func TestReadObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.yaml")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# head\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n---\n")
	objects, err := ReadObjects(path)
	if err != nil || len(objects) != 2 || objects[0].GetKind() != "Secret" || objects[1].GetName() != "b" {
		t.Errorf("got objects %v, error %v, want Secret a and Pod b", objects, err)
	}
	write("kind: [")
	if _, err := ReadObjects(path); err == nil {
		t.Error("want an error for broken YAML")
	}
}

func TestTouchedConditions(t *testing.T) {
	e := &Env{Scheme: scheme.Scheme, clock: fixedClock{}}
	service := &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{
		{Type: "Other", Status: metav1.ConditionTrue}, {Type: touchCondition, Message: "old"},
	}}}
	service.ResourceVersion = "5"
	conditions, err := e.touchedConditions(service)
	if err != nil || len(conditions) != 2 || conditions[0].(map[string]any)["message"] != "at 5" || conditions[1].(map[string]any)["type"] != "Other" {
		t.Errorf("got conditions %v, error %v, want a new %s and Other", conditions, err, touchCondition)
	}
	if conditions, err := e.touchedConditions(&corev1.ConfigMap{}); err != nil || conditions != nil {
		t.Errorf("got conditions %v, error %v of a ConfigMap, want none", conditions, err)
	}
	if _, err := e.touchedConditions(unregisteredObject{}); err == nil {
		t.Error("want an error for a type that the scheme does not know")
	}
}

func TestConditionsOf(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Widget", "status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}}}
	conditions, err := conditionsOf(object)
	if err != nil || len(conditions) != 1 || conditions[0].Type != "Ready" {
		t.Errorf("got conditions %v, error %v, want Ready", conditions, err)
	}
	object.Object["status"] = "text"
	if _, err := conditionsOf(object); err == nil {
		t.Error("want an error for a status that is a string")
	}
}

// unregisteredObject is of a type that no scheme contains.
type unregisteredObject struct{ client.Object }
