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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// podCache holds the pods of runtimes in served namespaces, with what tells why they do not run.
func newPodCache(mgr ctrl.Manager, namespaces *modelmesh.Namespaces) (cache.Cache, error) {
	return modelmesh.NewMeshCache(mgr, &corev1.Pod{}, namespaces, func(o any) (any, error) {
		if pod, ok := o.(*corev1.Pod); ok {
			pod.Annotations, pod.ManagedFields, pod.Spec = nil, nil, corev1.PodSpec{}
		}
		return o, nil
	})
}

// cause says why a runtime has no pod that serves: what keeps its objects from being written, else what its Deployment and pods tell.
func (r *runtimeReconciler) findCause(ctx context.Context, f *namespaceState, t modelmesh.Runtime, deployment string) (modelmesh.Cause, error) {
	for _, subject := range []string{actionValidate, actionApplyGuards, actionApply} {
		if text := r.reporter.lastMessage(f.Namespace, t.Object, subject); text != "" {
			return modelmesh.Cause{Message: text, Invalid: subject == actionValidate}, nil
		}
	}
	d := &appsv1.Deployment{}
	err := r.Cached.Get(ctx, namespacedName(f.Namespace, deployment), d, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) || err == nil && (d.Status.AvailableReplicas > 0 || d.Spec.Selector == nil) {
		return modelmesh.Cause{}, nil
	}
	if err != nil {
		return modelmesh.Cause{}, fmt.Errorf("reading Deployment %s: %w", deployment, err)
	}
	pods := &corev1.PodList{}
	if err := r.pods.List(ctx, pods, client.InNamespace(f.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels), client.UnsafeDisableDeepCopy); err != nil {
		return modelmesh.Cause{}, fmt.Errorf("listing the pods of Deployment %s: %w", deployment, err)
	}
	return modelmesh.Cause{Message: conditions.Cause(d, pods.Items)}, nil
}

// servesOrSays lets through changes of a Deployment in whether it serves, and in why it does not.
func availabilityChanged() predicate.Predicate {
	state := func(o client.Object) (serves bool, cause string) {
		if d, ok := o.(*appsv1.Deployment); ok {
			serves, cause = d.Status.AvailableReplicas > 0, conditions.Cause(d, nil)
		}
		return serves, cause
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		serves, cause := state(e.ObjectOld)
		servesNow, causeNow := state(e.ObjectNew)
		return serves != servesNow || cause != causeNow
	}}
}

// diagnosed lets through the pods that do not run, and changes in why.
func podProblemChanged() predicate.Predicate {
	diagnosis := func(o client.Object) string {
		if pod, ok := o.(*corev1.Pod); ok {
			return conditions.Diagnose([]corev1.Pod{*pod})
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return diagnosis(e.Object) != "" },
		DeleteFunc: func(e event.DeleteEvent) bool { return diagnosis(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return diagnosis(e.ObjectOld) != diagnosis(e.ObjectNew) },
	}
}
