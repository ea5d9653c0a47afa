package modelregistry

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// specDefaults is the JSON merge patch (RFC 7396) that makes the spec which is used out of the stored one, "{}" when they are
// equal.
func specDefaults(stored, used *v1beta1.ModelRegistrySpec) (string, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return "", fmt.Errorf("encoding the stored spec: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(used)
	if err != nil {
		return "", fmt.Errorf("encoding the spec with its defaults: %w", err)
	}
	patch, err := json.Marshal(mergePatch(before, after))
	if err != nil {
		return "", fmt.Errorf("encoding the defaults: %w", err)
	}
	return string(patch), nil
}

// mergePatch is what RFC 7396 makes after of before with. Lists are values like any other.
func mergePatch(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		old, known := before[key]
		inner, isObject := value.(map[string]any)
		oldInner, wasObject := old.(map[string]any)
		switch {
		case isObject && wasObject:
			if deeper := mergePatch(oldInner, inner); len(deeper) > 0 {
				patch[key] = deeper
			}
		case !known || !reflect.DeepEqual(old, value):
			patch[key] = value
		}
	}
	return patch
}
