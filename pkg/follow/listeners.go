package follow

import (
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Listeners are those who are told that something that is followed has changed. The zero value has none.
type Listeners struct {
	mu   sync.Mutex
	list []func()
}

// Subscribe registers a function that is called after each change. It must not block.
func (l *Listeners) Subscribe(listener func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, listener)
}

// Notify tells all of them, one after the other and outside of locks.
func (l *Listeners) Notify() {
	l.mu.Lock()
	list := slices.Clone(l.list)
	l.mu.Unlock()
	for _, notify := range list {
		notify()
	}
}

// Changes is a source that wakes a controller with the given object at every later change.
func (l *Listeners) Changes(object client.Object, h handler.EventHandler) source.Source {
	wake, woken := Waker(object, h)
	l.Subscribe(wake)
	return woken
}

// Waker returns a function that wakes a controller with the given object, and the source through which it does. Calls that come
// faster than the controller takes them up wake it once.
func Waker(object client.Object, h handler.EventHandler) (wake func(), woken source.Source) {
	events := make(chan event.GenericEvent, 1)
	return func() {
		select {
		case events <- event.GenericEvent{Object: object}:
		default: // one that has not been taken up yet covers this change too
		}
	}, source.Channel(events, h)
}
