package appwrapper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// podMoved lets through what changes the facts about a pod.
type podMoved struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (podMoved) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Pod)
	after, same := e.ObjectNew.(*corev1.Pod)
	if !ok || !same {
		return true
	}
	return before.Status.Phase != after.Status.Phase || before.Spec.NodeName != after.Spec.NodeName ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

// componentMoved lets through what changes the facts about a component: that it came, is being deleted, says something else
// about itself, or went.
type componentMoved struct {
	queue workqueue.TypedInterface[reconcile.Request]
	// done hears of success, which a component may not survive.
	done func(aw, component types.UID)
}

// OnAdd implements cache.ResourceEventHandler.
func (m *componentMoved) OnAdd(object any, _ bool) { m.enqueue(object) }

// OnUpdate implements cache.ResourceEventHandler.
func (m *componentMoved) OnUpdate(before, after any) {
	old, ok := before.(client.Object)
	now, same := after.(client.Object)
	if ok && same && old.GetUID() == now.GetUID() && (old.GetDeletionTimestamp() == nil) == (now.GetDeletionTimestamp() == nil) &&
		verdictOf(old) == verdictOf(now) {
		return
	}
	m.enqueue(after)
}

// OnDelete implements cache.ResourceEventHandler.
func (m *componentMoved) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	m.enqueue(object)
}

func (m *componentMoved) enqueue(object any) {
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	if owner := metav1.GetControllerOf(o); owner != nil && isAppWrapper(owner) && verdictOf(o).outcome == rules.Succeeded {
		m.done(owner.UID, o.GetUID())
	}
	for _, request := range byLabel(context.Background(), o) {
		m.queue.Add(request)
	}
}

func verdictOf(o client.Object) verdict {
	return judged(o.GetObjectKind().GroupVersionKind(), whole(o))
}
