package singleton

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Listeners are functions that are called at each change of something that lives as long as the process. They themselves may not: an
// attempt to set up a component may fail, and another one follows. So each listens until a context ends.
// The zero value has none.
type Listeners[T any] struct {
	mu   sync.Mutex
	list []*listener[T] // never changed in place
}

type listener[T any] struct {
	ctx    context.Context
	notify func(T)
}

// Subscribe has the function called after each change, until ctx ends; no call begins after that. It must not block.
func (l *Listeners[T]) Subscribe(ctx context.Context, tell func(T)) {
	one := &listener[T]{ctx: ctx, notify: tell}
	l.mu.Lock()
	l.list = append(slices.Clip(l.list), one)
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(slices.Clone(l.list), func(other *listener[T]) bool { return other == one })
	})
}

// Notify tells all of them, one after the other and outside of locks.
func (l *Listeners[T]) Notify(value T) {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	for _, one := range list {
		if one.ctx.Err() == nil {
			one.notify(value)
		}
	}
}

// Len returns how many listen.
func (l *Listeners[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// Changes is a source that wakes a controller with the given object at every change while the controller runs. One that comes
// before is seen anyway, since a controller looks at its objects only after all its sources have been started. Changes that come
// faster than the controller takes them up wake it once.
func (l *Listeners[T]) Source(object client.Object, h handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		events := make(chan event.GenericEvent, 1)
		l.Subscribe(ctx, func(T) {
			select {
			case events <- event.GenericEvent{Object: object}:
			default: // one that has not been taken up yet covers this change too
			}
		})
		return source.Channel(events, h).Start(ctx, queue)
	})
}
