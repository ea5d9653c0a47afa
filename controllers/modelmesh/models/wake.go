package models

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// wakes brings the controller to models of which something was heard.
type wakes struct {
	memory *memory
	feed   *feed
	known  map[string]origin
	// breakers of the namespaces are closed when their pods have changed.
	breakers *breakers
}

// onEtcdEvent is called with what the mesh wrote into etcd. A model of the same name from another source may have waited for just that.
func (w *wakes) onEtcdEvent(id, namespace, name string) {
	if id == "" {
		id = modelmesh.SourcePredictor
	}
	model := types.NamespacedName{Namespace: namespace, Name: name}
	if _, known := w.known[id]; known {
		key := join(id, model)
		w.memory.mark(key)
		w.feed.add(key)
	}
	for other := range w.known {
		if key := join(other, model); other != id && w.memory.markIfKnown(key) {
			w.feed.add(key)
		}
	}
}

// onEndpointsChanged is called when the client of a namespace or the pods behind it have changed.
func (w *wakes) onEndpointsChanged(namespace string) {
	w.breakers.reset(namespace)
	w.feed.add(w.memory.markNamespaceStale(namespace)...)
}

// onSourceReady is called when a source that was away may be there again: what was heard meanwhile is looked at.
func (w *wakes) onSourceReady(id string) { w.feed.add(w.memory.of(id)...) }

// request is that for a model of a source.
func request(id string, name types.NamespacedName) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: join(id, name)}}
}
