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

// byLabel maps a pod or component to the AppWrapper whose name it bears.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[awv1beta2.LabelAppWrapper]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// nodeIndex is the field by which the cache finds the pods on a node.
const nodeIndex = "node"

// onNode maps a node to the AppWrappers with pods on it.
func (w *workloads) onNode(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := w.kinds.cache.List(ctx, pods, client.MatchingFields{nodeIndex: node.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the pods on a node whose health changed", "node", node.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, byLabel(ctx, &pods.Items[i])...)
	}
	return requests
}

// podMoved lets through what changes the facts about a pod, and why it does not run.
type podMoved struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (podMoved) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Pod)
	after, same := e.ObjectNew.(*corev1.Pod)
	if !ok || !same {
		return true
	}
	cause := conditions.Diagnose([]corev1.Pod{*after})
	return before.Status.Phase != after.Status.Phase || before.Spec.NodeName != after.Spec.NodeName ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		cause != "" && cause != conditions.Diagnose([]corev1.Pod{*before})
}

// componentMoved enqueues AppWrappers for what changes the facts about a component: that it came, is being deleted, says something else
// about itself, or went. done hears of success, which a component may not survive.
func componentMoved(queue workqueue.TypedInterface[reconcile.Request], done func(aw, component types.UID)) toolscache.ResourceEventHandler {
	enqueue := func(object any) {
		o, ok := object.(client.Object)
		if !ok {
			return
		}
		if owner := metav1.GetControllerOf(o); owner != nil && isAppWrapper(owner) && verdictOf(o).outcome == rules.Succeeded {
			done(owner.UID, o.GetUID())
		}
		for _, request := range byLabel(context.Background(), o) {
			queue.Add(request)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			old, ok := before.(client.Object)
			now, same := after.(client.Object)
			if !ok || !same || old.GetUID() != now.GetUID() || (old.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil) ||
				verdictOf(old) != verdictOf(now) {
				enqueue(after)
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

func verdictOf(o client.Object) verdict {
	return judged(o.GetObjectKind().GroupVersionKind(), whole(o))
}

// slim is the transform of the cache: of pods and components it keeps what rules look at. Thousands of pods are held.
func slim(in any) (any, error) {
	switch object := in.(type) {
	case *corev1.Pod:
		return slimPod(object), nil
	case *unstructured.Unstructured:
		return slimComponent(object), nil
	case *metav1.PartialObjectMetadata:
		object.ManagedFields, object.Annotations = nil, nil
	}
	return in, nil // a tombstone holds what was slimmed before
}

func slimPod(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields, pod.Annotations, pod.Labels = nil, nil, keep(pod.Labels)
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

// keep leaves the labels by which pods are found and assigned.
func keep(labels map[string]string) map[string]string {
	out := make(map[string]string, 1)
	for _, key := range []string{awv1beta2.LabelAppWrapper, labelJobSet, raycluster.LabelCluster} {
		if value, ok := labels[key]; ok {
			out[key] = value
		}
	}
	return out
}

// judgedFields are the fields of a status that judges read.
var judgedFields = []string{"conditions", "jobStatus", "jobDeploymentStatus", "rayClusterName", "state", "reason", "message"}

func slimComponent(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := nested.Pick(nested.Map(object.Object, "metadata"), "namespace", "name", "uid", "resourceVersion", "ownerReferences", "deletionTimestamp")
	out := &unstructured.Unstructured{Object: nested.Pick(object.Object, "apiVersion", "kind")}
	out.Object["metadata"] = metadata
	out.SetLabels(keep(object.GetLabels()))
	if status := nested.Map(object.Object, "status"); status != nil {
		out.Object["status"] = nested.Pick(status, judgedFields...)
	}
	return out
}
