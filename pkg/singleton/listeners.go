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

// Listeners holds functions that are called after each change of a value. A listener is removed when its context ends, because the setup of
// a component can fail and be repeated within one process. The zero value is ready to use.
type Listeners[T any] struct {
	mu   sync.Mutex
	list []*listener[T] // copied on write
}

type listener[T any] struct {
	ctx    context.Context
	notify func(T)
}

// Subscribe adds a function that is called after each change until ctx ends. It must not block.
func (l *Listeners[T]) Subscribe(ctx context.Context, notify func(T)) {
	added := &listener[T]{ctx: ctx, notify: notify}
	l.mu.Lock()
	l.list = append(slices.Clip(l.list), added)
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(slices.Clone(l.list), func(other *listener[T]) bool { return other == added })
	})
}

// Notify calls all listeners in order, without holding the lock.
func (l *Listeners[T]) Notify(value T) {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	for _, listener := range list {
		if listener.ctx.Err() == nil {
			listener.notify(value)
		}
	}
}

// Len returns the number of listeners.
func (l *Listeners[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// EventSource returns a source that triggers a controller with the given object after each change. Changes before its start need no event:
// a controller reads its objects after all sources have started. Changes are merged while an event is pending.
func (l *Listeners[T]) EventSource(object client.Object, h handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		events := make(chan event.GenericEvent, 1)
		l.Subscribe(ctx, func(T) {
			select {
			case events <- event.GenericEvent{Object: object}:
			default: // the pending event covers this change
			}
		})
		return source.Channel(events, h).Start(ctx, queue)
	})
}
