package appwrapper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// labelToAppWrapper maps a pod or component to the AppWrapper that its label names.
func labelToAppWrapper(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[awv1beta2.LabelAppWrapper]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// nodeIndex is the index of pods by node.
const nodeIndex = "node"

// nodeToAppWrappers maps a node to the AppWrappers with pods on it.
func (w *workloadReconciler) nodeToAppWrappers(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := w.kinds.cache.List(ctx, pods, client.MatchingFields{nodeIndex: node.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the pods on a node whose health changed", "node", node.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, labelToAppWrapper(ctx, &pods.Items[i])...)
	}
	return requests
}

// podChanged selects updates of a pod that change its phase, its node or whether it is terminating, or that give a new reason why it does
// not run.
type podChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (podChanged) Update(e event.UpdateEvent) bool {
	original, ok := e.ObjectOld.(*corev1.Pod)
	updated, okNew := e.ObjectNew.(*corev1.Pod)
	if !ok || !okNew {
		return true
	}
	cause := conditions.Diagnose([]corev1.Pod{*updated})
	return original.Status.Phase != updated.Status.Phase || original.Spec.NodeName != updated.Spec.NodeName ||
		(original.DeletionTimestamp == nil) != (updated.DeletionTimestamp == nil) ||
		cause != "" && cause != conditions.Diagnose([]corev1.Pod{*original})
}

// componentHandler enqueues the AppWrapper of a component that is created or deleted, gets a deletionTimestamp, or reports another state. It
// calls onSuccess for a component that reports success, because the component may be deleted soon.
func componentHandler(queue workqueue.TypedInterface[reconcile.Request], onSuccess func(owner, uid types.UID)) toolscache.ResourceEventHandler {
	enqueue := func(object any) {
		o, ok := object.(client.Object)
		if !ok {
			return
		}
		if owner := metav1.GetControllerOf(o); owner != nil && isAppWrapper(owner) && stateOf(o).outcome == rules.Succeeded {
			onSuccess(owner.UID, o.GetUID())
		}
		for _, request := range labelToAppWrapper(context.Background(), o) {
			queue.Add(request)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(oldObject, newObject any) {
			original, ok := oldObject.(client.Object)
			updated, okNew := newObject.(client.Object)
			if !ok || !okNew || original.GetUID() != updated.GetUID() || (original.GetDeletionTimestamp() == nil) != (updated.GetDeletionTimestamp() == nil) ||
				stateOf(original) != stateOf(updated) {
				enqueue(newObject)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			enqueue(object)
		},
	}
}

func stateOf(o client.Object) reportedState {
	return readState(o.GetObjectKind().GroupVersionKind(), o)
}

// trimObject removes the fields of cached objects that the controller does not read, because the cache may hold thousands of pods.
func trimObject(in any) (any, error) {
	switch object := in.(type) {
	case *corev1.Pod:
		return trimPod(object), nil
	case *unstructured.Unstructured:
		return trimComponent(object), nil
	case *metav1.PartialObjectMetadata:
		object.ManagedFields, object.Annotations = nil, nil
	}
	return in, nil // the object in a tombstone is trimmed already
}

func trimPod(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields, pod.Annotations, pod.Labels = nil, nil, selectorLabels(pod.Labels)
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: pod.Spec.Containers}
	for i, c := range pod.Spec.Containers {
		pod.Spec.Containers[i] = corev1.Container{Name: c.Name, Resources: c.Resources}
	}
	s := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: s.Phase, Reason: s.Reason, Message: s.Message, Conditions: s.Conditions,
		InitContainerStatuses: s.InitContainerStatuses, ContainerStatuses: s.ContainerStatuses,
	}
	return pod
}

// selectorLabels returns the labels by which pods are selected.
func selectorLabels(labels map[string]string) map[string]string {
	selected := make(map[string]string, 1)
	for _, key := range []string{awv1beta2.LabelAppWrapper, labelJobSet, raycluster.LabelCluster} {
		if value, ok := labels[key]; ok {
			selected[key] = value
		}
	}
	return selected
}

// statusFields are the status fields that statusReaders read.
var statusFields = []string{"conditions", "jobStatus", "jobDeploymentStatus", "rayClusterName", "state", "reason", "message"}

func trimComponent(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := nested.Pick(nested.Map(object.Object, "metadata"),
		"namespace", "name", "uid", "resourceVersion", "ownerReferences", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
	trimmed := &unstructured.Unstructured{Object: nested.Pick(object.Object, "apiVersion", "kind")}
	trimmed.Object["metadata"] = metadata
	trimmed.SetLabels(selectorLabels(object.GetLabels()))
	if status := nested.Map(object.Object, "status"); status != nil {
		trimmed.Object["status"] = nested.Pick(status, statusFields...)
	}
	return trimmed
}
