package singleton

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return queue
}

func newSource(l *Listeners[int]) source.Source {
	return l.EventSource(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "changed"}}, &handler.EnqueueRequestForObject{})
}

// A listener is removed when its context ends; other listeners are kept.
func TestListenerIsRemovedWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners[int]
		var notified []string
		subscribe := func(name string) context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			l.Subscribe(ctx, func(int) { notified = append(notified, name) })
			return cancel
		}
		expectNotified := func(want ...string) {
			t.Helper()
			notified = nil
			if l.Notify(1); !slices.Equal(notified, want) {
				t.Errorf("notified %q, want %q", notified, want)
			}
		}
		a, b, c := subscribe("a"), subscribe("b"), subscribe("c")
		expectNotified("a", "b", "c")
		b()
		expectNotified("a", "c") // b is not called, although it is removed asynchronously
		synctest.Wait()
		if l.Len() != 2 {
			t.Errorf("%d listeners, want 2", l.Len())
		}
		defer subscribe("d")()
		expectNotified("a", "c", "d")
		a()
		c()
		synctest.Wait()
		expectNotified("d")
	})
}

// Listeners may be added and removed during a call of Notify.
func TestSubscribeDuringNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners[int]
		calls := 0
		ctx, cancel := context.WithCancel(t.Context())
		l.Subscribe(t.Context(), func(int) {
			cancel()
			l.Subscribe(t.Context(), func(int) { calls += 100 })
		})
		l.Subscribe(ctx, func(int) { t.Error("the listener was called after its context ended") })
		l.Subscribe(t.Context(), func(n int) { calls += n })
		l.Notify(7)
		if calls != 7 {
			t.Errorf("sum of the received values %d, want 7: a new listener receives only later changes", calls)
		}
	})
}

// All listeners are removed after concurrent calls. Run with -race.
func TestListenersConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners[int]
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 50 {
					ctx, cancel := context.WithCancel(t.Context())
					l.Subscribe(ctx, func(int) {})
					l.Notify(1)
					cancel()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if l.Len() != 0 {
			t.Errorf("%d listeners were not removed", l.Len())
		}
	})
}

// A controller receives changes while it runs. Notify does not block while an event is pending.
func TestEventSourceTriggersController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners[int]
		changes, queue := newSource(&l), newQueue(t)
		if l.Notify(0); l.Len() != 0 {
			t.Error("a controller that has not started is subscribed")
		}
		ctx, stop := context.WithCancel(t.Context())
		if err := changes.Start(ctx, queue); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for range 5 {
				l.Notify(1)
			}
			synctest.Wait()
			if n := queue.Len(); n != 1 {
				t.Fatalf("%d queued requests, want 1", n)
			}
			request, _ := queue.Get()
			if request.Name != "changed" {
				t.Errorf("got request %v, want changed", request)
			}
			queue.Done(request)
		}
		stop()
		synctest.Wait()
		l.Notify(1)
		synctest.Wait()
		if queue.Len() != 0 || l.Len() != 0 {
			t.Errorf("%d requests and %d listeners after the end of the controller", queue.Len(), l.Len())
		}
		queue.ShutDown()
	})
}

// Controllers that are started and stopped repeatedly, or never run, leave no listeners or goroutines.
func TestEventSourceRemovesListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners[int]
		before := runtime.NumGoroutine()
		for range 100 {
			_ = newSource(&l) // as for a controller that could not be built
			ctx, stop := context.WithCancel(t.Context())
			queue := newQueue(t)
			if err := newSource(&l).Start(ctx, queue); err != nil {
				t.Fatal(err)
			}
			if l.Len() != 1 {
				t.Fatalf("%d listeners, want 1", l.Len())
			}
			stop()
			queue.ShutDown()
			synctest.Wait()
		}
		if after := runtime.NumGoroutine(); l.Len() != 0 || after > before+5 {
			t.Errorf("%d listeners were not removed, and %d goroutines run, before %d", l.Len(), after, before)
		}
	})
}
