package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// AnnotationLegacyTemplate on an adopted Deployment holds the hash of the pod template as the legacy controller would build it. As long
// as that template is unchanged, the pods keep their legacy form, and the adoption restarts no pod. The pods get the current form when the
// template changes, when a user removes the annotation, or if they have an OAuth proxy of the legacy controller.
const AnnotationLegacyTemplate = "modelmesh.opendatahub.io/original-template"

// hasLegacyLabel reports whether an object has the label of the legacy controller. Objects of this operator have that label too.
func hasLegacyLabel(live metav1.Object) bool {
	return live.GetLabels()[resources.LabelManagedBy] == resources.ControllerName
}

func adoptIfLegacy(live *unstructured.Unstructured) bool { return hasLegacyLabel(live) }

// templateContains reports whether the live pod template has all fields of the desired one: applying it restarts no pod. Additional
// fields, such as defaults, are ignored.
func templateContains(desired any, live *corev1.PodTemplateSpec) (bool, error) {
	desiredJSON, desiredErr := json.Marshal(desired)
	liveJSON, liveErr := json.Marshal(live)
	if err := errors.Join(desiredErr, liveErr); err != nil {
		return false, fmt.Errorf("encoding the pod templates: %w", err)
	}
	merged := &corev1.PodTemplateSpec{}
	patched, err := strategicpatch.StrategicMergePatch(liveJSON, desiredJSON, merged)
	if err == nil {
		err = json.Unmarshal(patched, merged)
	}
	if err != nil {
		return false, fmt.Errorf("merging the pod templates: %w", err)
	}
	return equality.Semantic.DeepEqual(live, merged), nil
}

// hasLegacyProxy reports whether the legacy controller added its OAuth proxy to a pod template. A runtime can have a container of that
// name too.
func hasLegacyProxy(live *corev1.PodTemplateSpec, spec *v1alpha1.ServingRuntimeSpec) bool {
	isProxy := func(c corev1.Container) bool { return c.Name == oauthproxy.ContainerName }
	return slices.ContainsFunc(live.Spec.Containers, isProxy) && !slices.ContainsFunc(spec.Containers, isProxy)
}

// proxyReplacedMessage returns the message of the Event about pods with an OAuth proxy of the legacy controller, or "". The cookie key of that
// proxy is public, so an adoption restarts these pods.
func (r *runtimeReconciler) proxyReplacedMessage(in resources.RuntimeInputs, live *appsv1.Deployment) string {
	if live == nil || !r.hasLegacyForm(live) || !hasLegacyProxy(&live.Spec.Template, in.Spec) {
		return ""
	}
	message := fmt.Sprintf("Deployment %s is replaced once: the legacy controller gave its OAuth proxy a public cookie key; ", live.Name)
	switch {
	case in.Proxy == nil:
		return message + "the proxy was removed, and REST has no authentication"
	case in.Proxy.NeedsCookieSecret():
		return message + "the new key is in Secret " + authproxy.CookieSecret
	default:
		return message + "the new proxy has no cookies"
	}
}

// hasLegacyForm reports whether a Deployment belongs to the legacy controller, or was adopted and has kept its legacy form.
func (r *runtimeReconciler) hasLegacyForm(live *appsv1.Deployment) bool {
	if r.applier.IsManaged(live) {
		return live.Annotations[AnnotationLegacyTemplate] != ""
	}
	return hasLegacyLabel(live)
}

// isCookieKeyMissing reports whether the Deployment must wait for the cookie Secret of the proxy. Without models it must not: the Secret
// is then created only when a managed Deployment has pods.
func (r *runtimeReconciler) isCookieKeyMissing(ctx context.Context, state *namespaceState, proxy *authproxy.Proxy) (bool, error) {
	if proxy == nil || !proxy.NeedsCookieSecret() || len(state.models) == 0 {
		return false, nil
	}
	metadata, err := objectmeta.Get(ctx, r.Cached, secretKind, namespacedName(state.Namespace, authproxy.CookieSecret))
	return err == nil && metadata == nil, err
}
