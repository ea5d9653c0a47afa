package models

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// wakes is the source of requests for models that something has happened to in the mesh.
type wakes struct {
	memory *memory
	known  map[string]origin
	// breakers of the namespaces are closed when their pods have changed.
	breakers *breakers

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the controller starts
}

// Start implements source.Source. What has happened before is in memory.
func (w *wakes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	w.queue = queue
	w.mu.Unlock()
	for id := range w.known {
		w.onSourceReady(id)
	}
	return nil
}

// String names the source in the controller's log.
func (w *wakes) String() string { return "events of the mesh" }

// enqueue never blocks. Keys that are queued already are not queued twice.
func (w *wakes) enqueue(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for _, key := range keys {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// onEtcdEvent is called with what the mesh wrote into etcd. A model of the same name from another source may have waited for just
// that.
func (w *wakes) onEtcdEvent(id, namespace, name string) {
	if id == "" {
		id = modelmesh.SourcePredictor
	}
	model := types.NamespacedName{Namespace: namespace, Name: name}
	if _, known := w.known[id]; known {
		key := join(id, model)
		w.memory.mark(key)
		w.enqueue(key)
	}
	for other := range w.known {
		if key := join(other, model); other != id && w.memory.markIfKnown(key) {
			w.enqueue(key)
		}
	}
}

// onEndpointsChanged is called when the client of a namespace or the pods behind it have changed.
func (w *wakes) onEndpointsChanged(namespace string) {
	w.breakers.reset(namespace)
	w.enqueue(w.memory.markNamespaceStale(namespace)...)
}

// onSourceReady is called when a source that was away may be there again: events of the meantime are handled.
func (w *wakes) onSourceReady(id string) { w.enqueue(w.memory.of(id)...) }

// request is that for a model of a source.
func request(id string, name types.NamespacedName) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: join(id, name)}}
}
