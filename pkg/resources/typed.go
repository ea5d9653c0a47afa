package resources

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Typed is the apply configuration of an object whose API offers none. It owns what the object says: the status, null and {} are
// what Go writes for fields that are not set, and are left out. An empty list that is not nil stays.
func Typed(kind schema.GroupVersionKind, object client.Object) runtime.ApplyConfiguration {
	object.GetObjectKind().SetGroupVersionKind(kind)
	return typed{object}
}

type typed struct{ client.Object }

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (typed) IsApplyConfiguration() {}

// GroupVersionKind tells the kind without encoding the object.
func (t typed) GroupVersionKind() schema.GroupVersionKind {
	return t.GetObjectKind().GroupVersionKind()
}

// MarshalJSON implements json.Marshaler.
func (t typed) MarshalJSON() ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", t.GroupVersionKind().Kind, t.GetName(), err)
	}
	delete(fields, "status")
	dropUnset(fields)
	return json.Marshal(fields)
}

// dropUnset removes null and {} from all fields of a value, and reports whether the value itself is one of them.
func dropUnset(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if dropUnset(field) {
				delete(v, key)
			}
		}
		return len(v) == 0
	case []any:
		for _, element := range v {
			dropUnset(element)
		}
		return v == nil
	default:
		return value == nil
	}
}

// Unstructured returns an empty object of a kind.
func NewUnstructured(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// Decode reads an object of another API into its Go type. The error names the object.
func Decode[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return into, nil
}
