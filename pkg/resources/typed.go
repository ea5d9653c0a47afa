package resources

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Typed returns an apply configuration of an object whose API has none. It drops the status, null and {}, which Go encodes for unset
// fields. Empty lists that are not nil are kept.
func Typed(kind schema.GroupVersionKind, object client.Object) runtime.ApplyConfiguration {
	object.GetObjectKind().SetGroupVersionKind(kind)
	return typed{object}
}

type typed struct{ client.Object }

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (typed) IsApplyConfiguration() {}

// GroupVersionKind returns the kind without encoding the object.
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

// NewUnstructured returns an empty object of a kind.
func NewUnstructured(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// Decode converts an unstructured object to its Go type. The error names the object.
func Decode[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return into, nil
}

// MustConvert converts an API value of a user to the apply configuration T of the same type, such as corev1.Affinity to
// AffinityApplyConfiguration. Unset fields remain unset, so that the API server sets their defaults. It panics if the types do not match.
func MustConvert[T any](from any) *T {
	into := new(T)
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	utilruntime.Must(err)
	return into
}

// MustConvertEach is MustConvert for every element of a list. It returns nil for an empty list.
func MustConvertEach[T, F any](from []F) []T {
	var into []T
	for i := range from {
		into = append(into, *MustConvert[T](&from[i]))
	}
	return into
}
