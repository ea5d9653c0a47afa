package runtimes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// newPodCache returns a cache of the runtime pods, without the fields that the diagnosis does not need.
func newPodCache(mgr ctrl.Manager, namespaces *modelmesh.Namespaces) (cache.Cache, error) {
	return namespaces.NewCache(mgr, pkgmodelmesh.LabelService, func(o any) (any, error) {
		if pod, ok := o.(*corev1.Pod); ok {
			pod.Annotations, pod.ManagedFields, pod.Spec = nil, nil, corev1.PodSpec{}
		}
		return o, nil
	})
}

// findCause returns the reason why a runtime may have no serving pod: an error that was reported for the runtime, or else the reason why
// the Deployment has no available pod.
func (r *runtimeReconciler) findCause(ctx context.Context, state *namespaceState, rt modelmesh.Runtime, deployment string) (modelmesh.Cause, error) {
	for _, action := range []string{actionValidate, actionApplyGuards, actionApply} {
		if message := state.lastMessage(rt.Object, action); message != "" {
			return modelmesh.Cause{Message: message, Invalid: action == actionValidate}, nil
		}
	}
	liveDeployment := &appsv1.Deployment{}
	err := r.Cached.Get(ctx, namespacedName(state.Namespace, deployment), liveDeployment, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) || err == nil && (liveDeployment.Status.AvailableReplicas > 0 || liveDeployment.Spec.Selector == nil) {
		return modelmesh.Cause{}, nil
	}
	if err != nil {
		return modelmesh.Cause{}, fmt.Errorf("reading Deployment %s: %w", deployment, err)
	}
	pods := &corev1.PodList{}
	if err := r.pods.List(ctx, pods, client.InNamespace(state.Namespace), client.MatchingLabels(liveDeployment.Spec.Selector.MatchLabels), client.UnsafeDisableDeepCopy); err != nil {
		return modelmesh.Cause{}, fmt.Errorf("listing the pods of Deployment %s: %w", deployment, err)
	}
	return modelmesh.Cause{Message: conditions.Cause(liveDeployment, pods.Items)}, nil
}

// availabilityChanged passes updates of a Deployment that change its availability or the reason why it is unavailable.
func availabilityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*appsv1.Deployment)
		current, okNew := e.ObjectNew.(*appsv1.Deployment)
		return ok && okNew && ((old.Status.AvailableReplicas > 0) != (current.Status.AvailableReplicas > 0) ||
			conditions.Cause(old, nil) != conditions.Cause(current, nil))
	}}
}

// podProblemChanged passes created and deleted pods with a problem, and changes of the problem.
func podProblemChanged() predicate.Predicate {
	problem := func(o client.Object) string {
		if pod, ok := o.(*corev1.Pod); ok {
			return conditions.Diagnose([]corev1.Pod{*pod})
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return problem(e.Object) != "" },
		DeleteFunc: func(e event.DeleteEvent) bool { return problem(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return problem(e.ObjectOld) != problem(e.ObjectNew) },
	}
}
