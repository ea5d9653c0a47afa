package framework

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	diff "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

const yamlBuffer = 4096

// TestingT contains the methods of testing.T and ginkgo.GinkgoT that [Golden] needs.
type TestingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Golden compares objects, in any order, with the YAML documents in a file. Fields that differ between runs are removed, see [Normalize].
// `go test -update` writes the file.
func Golden(t TestingT, path string, objects []*unstructured.Unstructured) {
	t.Helper()
	actual := normalized(objects)
	if *update {
		if err := writeGolden(path, actual); err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return
	}
	expected, err := ReadObjects(path)
	if err != nil {
		t.Fatalf("%v (run with -update to create it)", err)
		return
	}
	if difference := compareObjects(expected, actual); difference != "" {
		t.Fatalf("%s differs (-file +actual), run with -update if the change is intended:\n%s", path, difference)
	}
}

// compareObjects returns the differences between the objects of a golden file and the actual objects; "" if equal.
func compareObjects(expected, actual []*unstructured.Unstructured) string {
	byKey := func(objects []*unstructured.Unstructured) map[string]map[string]any {
		result := map[string]map[string]any{}
		for _, object := range normalized(objects) {
			result[objectKey(object)] = object.Object
		}
		return result
	}
	return diff.Diff(byKey(expected), byKey(actual))
}

// Normalize returns a copy of an object without status, uids, resourceVersion, generation, timestamps, managedFields and self link.
func Normalize(object *unstructured.Unstructured) *unstructured.Unstructured {
	clean := object.DeepCopy()
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(clean.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(clean.Object, "status")
	unstructured.RemoveNestedField(clean.Object, "spec", "template", "metadata", "creationTimestamp")
	owners, _, _ := unstructured.NestedSlice(clean.Object, "metadata", "ownerReferences")
	for _, owner := range owners {
		if fields, ok := owner.(map[string]any); ok {
			delete(fields, "uid")
		}
	}
	if len(owners) > 0 {
		// Cannot fail, because the path was read as a list before.
		_ = unstructured.SetNestedSlice(clean.Object, owners, "metadata", "ownerReferences")
	}
	return clean
}

func normalized(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	result := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		result = append(result, Normalize(object))
	}
	slices.SortFunc(result, func(a, b *unstructured.Unstructured) int { return cmp.Compare(objectKey(a), objectKey(b)) })
	return result
}

func objectKey(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s %s/%s", object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
}

func writeGolden(path string, objects []*unstructured.Unstructured) error {
	var content bytes.Buffer
	for index, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", objectKey(object), err)
		}
		if index > 0 {
			content.WriteString("---\n")
		}
		content.Write(document)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// ReadObjects returns the objects in the YAML documents of a file, and the items in place of a List.
func ReadObjects(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), yamlBuffer); ; {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		decoded, err := objectsIn(document)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		objects = append(objects, decoded...)
	}
}

// objectsIn returns the object of a document, or the items of a List.
func objectsIn(document json.RawMessage) ([]*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	// Whole numbers become int64, as in objects from an API server.
	if len(document) > 0 {
		if err := utiljson.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
	}
	switch {
	case len(object.Object) == 0:
		return nil, nil
	case !object.IsList():
		return []*unstructured.Unstructured{object}, nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for index := range list.Items {
		objects = append(objects, &list.Items[index])
	}
	return objects, nil
}

// GoldenText compares a text with a file. `go test -update` writes the file.
func GoldenText(t TestingT, path, actual string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(actual), 0o644)); err != nil {
			t.Fatalf("writing %s: %v", path, err)
		}
		return
	}
	expected, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to create it)", err)
		return
	}
	if difference := diff.Diff(string(expected), actual); difference != "" {
		t.Fatalf("%s differs (-file +actual), run with -update if the change is intended:\n%s", path, difference)
	}
}
