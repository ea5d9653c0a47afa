package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// response is the result of KServe for an object.
type response struct {
	Object map[string]any
	Error  string
}

// convertByKServe converts objects with the types of KServe.
func convertByKServe(t *testing.T, objects []*unstructured.Unstructured) []response {
	t.Helper()
	path, err := cluster.BuildPeer(t.Context(), cluster.KServeTypes, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path)
	command.Stdin = bytes.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var responses []response
	if err := json.Unmarshal(output, &responses); err != nil || len(responses) != len(objects) {
		t.Fatalf("got %d responses for %d objects, error %v", len(responses), len(objects), err)
	}
	return responses
}

// viewOf decodes an object into its view.
func viewOf(t *testing.T, object map[string]any) any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := object["kind"].(string)
	into := map[string]any{
		"ServingRuntime": &v1alpha1.ServingRuntime{}, "ClusterServingRuntime": &v1alpha1.ClusterServingRuntime{}, "InferenceService": &v1beta1.InferenceService{},
	}[kind]
	if into == nil {
		t.Fatalf("unknown kind %q", kind)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
	// KServe's type encodes an empty modelStatus, and empty fields that the view lacks.
	if service, ok := into.(*v1beta1.InferenceService); ok {
		service.Ignored = nil
		if service.Status.ModelStatus != nil && *service.Status.ModelStatus == (v1beta1.ModelStatus{}) {
			service.Status.ModelStatus = nil
		}
	}
	return into
}

func readObjects(t *testing.T, patterns ...string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: unexpected files %v, error %v", pattern, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "kustomization.yaml") {
				continue
			}
			more, err := framework.ReadObjects(file)
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, more...)
		}
	}
	return objects
}

// newerFields are fields of releases after the KServe of the test.
var newerFields = map[string]bool{"v1alpha1.ServingRuntimeSpec.ResourceClaims": true}

// The fields of the views have the same names and values as in KServe's types.
func TestViewsMatchKServe(t *testing.T) {
	objects := readObjects(t, "testdata/kserve.yaml", "../../config/runtimes/*.yaml", "../../config/samples/modelmesh_runtime_*.yaml",
		"../../config/samples/modelmesh_inferenceservice*.yaml")
	set := map[string]bool{}
	for i, result := range convertByKServe(t, objects) {
		object := objects[i]
		name := object.GetKind() + " " + object.GetName()
		if result.Error != "" {
			t.Errorf("%s: got error %s of KServe, want none", name, result.Error)
			continue
		}
		original, converted := viewOf(t, object.Object), viewOf(t, result.Object)
		if diff := cmp.Diff(original, converted); diff != "" {
			t.Errorf("%s: unexpected view after conversion by KServe:\n%s", name, diff)
		}
		raw, err := json.Marshal(original)
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]any
		if err := json.Unmarshal(raw, &written); err != nil {
			t.Fatal(err)
		}
		expectContains(t, name, result.Object, written)
		markFields(set, reflect.ValueOf(original).Elem())
	}
	for _, kind := range []any{v1alpha1.ServingRuntime{}, v1alpha1.ClusterServingRuntime{}, v1beta1.InferenceService{}} {
		for _, field := range fieldsOf(reflect.TypeOf(kind), nil) {
			if !set[field] && !newerFields[field] {
				t.Errorf("testdata/kserve.yaml does not set %s", field)
			}
		}
	}
}

// expectContains reports the fields of part that are missing or different in whole.
func expectContains(t *testing.T, path string, whole, part any) {
	t.Helper()
	switch p := part.(type) {
	case map[string]any:
		w, _ := whole.(map[string]any)
		for key, value := range p {
			if found, ok := w[key]; ok || value != nil {
				expectContains(t, path+"."+key, found, value)
			}
		}
	case []any:
		w, _ := whole.([]any)
		if len(w) != len(p) {
			t.Errorf("%s: got %v, want %v", path, w, p)
			return
		}
		for i := range p {
			expectContains(t, fmt.Sprintf("%s[%d]", path, i), w[i], p[i])
		}
	default:
		if whole != part {
			t.Errorf("%s: got %v, want %v", path, whole, part)
		}
	}
}

const ourPackages = "github.com/odh-platform/odh-platform-operator/apis/serving/"

// fieldsOf returns the fields of a type and of its nested types, if they are in this repository.
func fieldsOf(kind reflect.Type, known []string) []string {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || !strings.HasPrefix(kind.PkgPath(), ourPackages) {
		return known
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		name := kind.String() + "." + field.Name
		if field.Tag.Get("json") == "-" || slices.Contains(known, name) {
			continue
		}
		known = fieldsOf(field.Type, append(known, name))
	}
	return known
}

// markFields marks the fields of the types of this repository that have a value.
func markFields(set map[string]bool, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		markFields(set, value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			markFields(set, value.Index(i))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			markFields(set, value.MapIndex(key))
		}
	case reflect.Struct:
		if !strings.HasPrefix(value.Type().PkgPath(), ourPackages) {
			return
		}
		for i := range value.NumField() {
			if field := value.Field(i); !field.IsZero() {
				set[value.Type().String()+"."+value.Type().Field(i).Name] = true
				markFields(set, field)
			}
		}
	}
}

// [M6] A number that the schema allows makes lists of runtimes unreadable with KServe's types, but not with the types of this repository.
func TestLargeReplicasBreakListOnlyForKServe(t *testing.T) {
	list := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntimeList", "items": []any{
			map[string]any{"metadata": map[string]any{"name": "good"}, "spec": map[string]any{"containers": []any{}}},
			map[string]any{"metadata": map[string]any{"name": "many"}, "spec": map[string]any{"containers": []any{}, "replicas": int64(70000)}},
		},
	}}
	if a := convertByKServe(t, []*unstructured.Unstructured{list})[0]; !strings.Contains(a.Error, "cannot unmarshal number 70000") {
		t.Errorf("got error %q of KServe, object %v, want an error for 70000", a.Error, a.Object)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	views := &v1alpha1.ServingRuntimeList{}
	if err := json.Unmarshal(raw, views); err != nil || len(views.Items) != 2 || *views.Items[1].Spec.Replicas != 70000 {
		t.Errorf("got views %+v, error %v, want both runtimes", views, err)
	}
}
