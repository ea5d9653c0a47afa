package runtimes

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	podresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
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
	typed, err := podresources.Apply[corev1.PodTemplateSpec](want) // quantities come out as the API server spells them
	if err != nil {
		return false, fmt.Errorf("the pod template: %w", err)
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return false, fmt.Errorf("the pod template: %w", err)
	}
	there, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("the live pod template: %w", err)
	}
	return contains(there, wanted), nil
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

// originalProxy is the sidecar that the original put into a live pod template; nil where there is none.
func originalProxy(namespace string, live *corev1.PodTemplateSpec) *authproxy.Proxy {
	for i := range live.Spec.Containers {
		if c := &live.Spec.Containers[i]; c.Name == oauthproxy.ContainerName {
			return authproxy.Original(namespace, live.Spec.ServiceAccountName, c.Image)
		}
	}
	return nil
}
