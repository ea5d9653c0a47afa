package appwrapper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// nodeIndex is the field by which the cache finds the pods on a node.
const nodeIndex = "node"

// nodeMoved wakes the AppWrappers with pods on a node whose resources are to be left, or need no longer be (D13).
func (w *workloads) nodeMoved(nodes *Nodes) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		nodes.Changed(func(node string) {
			for _, request := range w.onNode(ctx, node) {
				queue.Add(request)
			}
		})
		return nil
	})
}

// onNode returns the AppWrappers with pods on a node.
func (w *workloads) onNode(ctx context.Context, node string) []reconcile.Request {
	pods := &corev1.PodList{}
	err := w.kinds.cache.List(ctx, pods, client.MatchingFields{nodeIndex: node}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the pods on a node whose health changed", "node", node)
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, byLabel(ctx, &pods.Items[i])...)
	}
	return requests
}
