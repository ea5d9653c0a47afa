package runtimes

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
)

// AnnotationOriginal on a Deployment that was taken over holds the hash of its pod template as the original rendered it. As long
// as that template stays the same the pods keep the form that the original gave them, so that a take-over rolls nothing. Once it
// changes, and the pods roll anyway, or a user removes the annotation, they get the form of ours.
const AnnotationOriginal = "modelmesh.opendatahub.io/original-template"

// originals tells whether the original made an object of which nothing else says that it is ours.
func originals(live metav1.Object) bool {
	return live.GetLabels()[resources.LabelManagedBy] == resources.ControllerName
}

// adoptsOriginals lets pkg/apply take over what the original made.
func adoptsOriginals(live *unstructured.Unstructured) bool { return originals(live) }

// holds tells whether a live pod template has everything of another: applying that one would roll no pod. What the live one has
// beyond it, from defaults or from third parties, counts for nothing.
func holds(want any, live *corev1.PodTemplateSpec) (bool, error) {
	text, err := json.Marshal(want)
	if err != nil {
		return false, fmt.Errorf("encoding the pod template: %w", err)
	}
	typed := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(text, typed); err != nil { // quantities come out as the API server spells them
		return false, fmt.Errorf("decoding the pod template: %w", err)
	}
	wanted, err := plain(typed)
	if err != nil {
		return false, err
	}
	there, err := plain(live)
	if err != nil {
		return false, err
	}
	return contains(there, wanted), nil
}

// plain is a template as maps and lists.
func plain(template *corev1.PodTemplateSpec) (any, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding a pod template: %w", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decoding a pod template: %w", err)
	}
	return out, nil
}

// contains tells whether live has all that want has.
func contains(live, want any) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0
		}
		for name, value := range w {
			if !contains(l[name], value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		return ok && containsItems(l, w) || !ok && len(w) == 0
	default:
		return reflect.DeepEqual(live, want)
	}
}

// containsItems compares lists: by their keys where items have keys, and as a whole elsewhere.
func containsItems(live, want []any) bool {
	if key := keyOf(want); key != "" {
		for _, w := range want {
			if !containsItem(live, w, key) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, want)
}

func containsItem(live []any, want any, key string) bool {
	w, _ := want.(map[string]any)
	for _, item := range live {
		if l, ok := item.(map[string]any); ok && l[key] == w[key] && contains(l, w) {
			return true
		}
	}
	return false
}

// keyOf is the field that tells the items of a list of the pod template apart; "" where they are plain values or have none.
func keyOf(items []any) string {
	for _, key := range []string{"mountPath", "name", "containerPort"} {
		all := len(items) > 0
		for _, item := range items {
			m, ok := item.(map[string]any)
			_, has := m[key]
			all = all && ok && has
		}
		if all {
			return key
		}
	}
	return ""
}
