package capability

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Changes is a source that wakes a controller with the given object at every later change. Changes that come faster than the
// controller takes them up wake it once.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	events := make(chan event.GenericEvent, 1)
	w.Subscribe(func(Set) {
		select {
		case events <- event.GenericEvent{Object: object}:
		default: // one that has not been taken up yet covers this change too
		}
	})
	return source.Channel(events, h)
}
