package runtimes

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	podresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// AnnotationOriginal on a Deployment that was taken over holds the hash of its pod template as the original rendered it. As long
// as that template stays the same the pods keep the form that the original gave them, so that a take-over rolls nothing. Once it
// changes, and the pods roll anyway, or a user removes the annotation, they get the form of ours. Pods with an OAuth proxy of the
// original get it at once.
const AnnotationLegacyTemplate = "modelmesh.opendatahub.io/original-template"

// originals tells whether the original made an object of which nothing else says that it is ours.
func isLegacy(live metav1.Object) bool {
	return live.GetLabels()[resources.LabelManagedBy] == resources.ControllerName
}

// adoptsOriginals lets pkg/apply take over what the original made.
func adoptIfLegacy(live *unstructured.Unstructured) bool { return isLegacy(live) }

// holds tells whether a live pod template has everything of another: applying that one would roll no pod. What the live one has
// beyond it, from defaults or from third parties, counts for nothing.
func templateContains(want any, live *corev1.PodTemplateSpec) (bool, error) {
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
	if key := mergeKey(want); key != "" {
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
func mergeKey(items []any) string {
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

// guarded reports whether the original put its OAuth proxy into a pod template. A container of that name may also be the runtime's own.
func hasLegacyProxy(live *corev1.PodTemplateSpec, spec *v1alpha1.ServingRuntimeSpec) bool {
	isProxy := func(c corev1.Container) bool { return c.Name == oauthproxy.ContainerName }
	return slices.ContainsFunc(live.Spec.Containers, isProxy) && !slices.ContainsFunc(spec.Containers, isProxy)
}

// opened returns the text of the Event about pods of the original whose guard every client can pass, because the key of its cookies is
// the same everywhere; "" for all other pods. These pods are replaced at once, the only ones that a take-over replaces.
func (r *runtimeReconciler) proxyReplacedMessage(in resources.RuntimeInputs, live *appsv1.Deployment) string {
	if live == nil || !r.hasLegacyForm(live) || !hasLegacyProxy(&live.Spec.Template, in.Spec) {
		return ""
	}
	text := fmt.Sprintf("Deployment %s is replaced once: the earlier controller gave its OAuth proxy a public cookie key; ", live.Name)
	switch {
	case in.Proxy == nil:
		return text + "there is no proxy any more, and REST is not guarded"
	case in.Proxy.NeedsCookieSecret():
		return text + "the new key is in Secret " + authproxy.CookieSecret
	default:
		return text + "the new proxy has no cookies"
	}
}

// keepsOriginal reports whether a Deployment is the original's, or was taken over in the form of the original.
func (r *runtimeReconciler) hasLegacyForm(live *appsv1.Deployment) bool {
	if r.applier.IsManaged(live) {
		return live.Annotations[AnnotationLegacyTemplate] != ""
	}
	return isLegacy(live)
}

// lacksKey reports whether pods would be replaced by such as wait for the key of their proxy. It is made as soon as there is a model,
// or a Deployment of ours with pods.
func (r *runtimeReconciler) isCookieKeyMissing(ctx context.Context, state *namespaceState, proxy *authproxy.Proxy) (bool, error) {
	if proxy == nil || !proxy.NeedsCookieSecret() || len(state.models) == 0 {
		return false, nil
	}
	head, err := capability.GetMetadata(ctx, r.Cached, secretKind, namespacedName(state.Namespace, authproxy.CookieSecret))
	return err == nil && head == nil, err
}
