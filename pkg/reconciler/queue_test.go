package reconciler

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func ask(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// newQueue returns the queue of a controller and shuts it down after the test.
func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	options := ControllerOptions(defaultWorkers)
	q := options.NewQueue("", options.RateLimiter)
	t.Cleanup(q.ShutDown)
	return q
}

// The first request of a namespace precedes many queued requests of another.
func TestQueueIsFairToNamespaces(t *testing.T) {
	q := newQueue(t)
	for i := range 300 {
		q.Add(ask("crowded", fmt.Sprintf("broken-%03d", i)))
	}
	q.Add(ask("quiet", "first"))
	q.Add(ask("quiet", "second"))
	q.Add(ask("", "node")) // of cluster scope
	if q.Len() != 303 {
		t.Fatalf("%d requests wait", q.Len())
	}
	var got []string
	for range 7 {
		r, _ := q.Get()
		got = append(got, r.String())
		q.Done(r)
	}
	want := []string{"crowded/broken-000", "quiet/first", "/node", "crowded/broken-001", "quiet/second", "crowded/broken-002", "crowded/broken-003"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// One worker is reserved for other namespaces.
func TestQueueReservesWorkerForOtherNamespaces(t *testing.T) {
	const workers = 4
	q := newQueue(t)
	started, finish := make(chan reconcile.Request), make(chan struct{})
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				r, shutdown := q.Get()
				if shutdown {
					return
				}
				started <- r
				<-finish
				q.Done(r)
			}
		})
	}
	for i := range 300 {
		q.Add(ask("crowded", fmt.Sprintf("hangs-%03d", i)))
	}
	for range workers - 1 {
		<-started
	}
	q.Add(ask("quiet", "first"))
	if r := <-started; r != ask("quiet", "first") {
		t.Errorf("the last worker got %s", r)
	}
	// Without other namespaces every request is processed.
	go func() {
		for range started {
		}
	}()
	close(finish)
	eventually(t, func() bool { return q.Len() == 0 })
	q.ShutDown()
	running.Wait()
	close(started)
}

// A single worker processes every namespace.
func TestQueueWithSingleWorker(t *testing.T) {
	q := newQueue(t)
	for i := range 3 {
		q.Add(ask("only", fmt.Sprint(i)))
	}
	for range 3 {
		r, _ := q.Get()
		q.Done(r)
	}
	if q.Len() != 0 {
		t.Errorf("%d are left", q.Len())
	}
}

// A request that is added while it is processed is processed again.
func TestRequestAddedDuringProcessingIsRepeated(t *testing.T) {
	q := newQueue(t)
	q.Add(ask("a", "x"))
	first, _ := q.Get()
	q.Add(first)
	if q.Len() != 0 {
		t.Error("a request that is being processed was queued for another worker")
	}
	q.Done(first)
	if again, _ := q.Get(); again != first {
		t.Errorf("got %s, want %s", again, first)
	}
	q.Done(first)
}

// The back-off grows to a minute, for each object separately.
func TestMaxBackoff(t *testing.T) {
	limiter := ControllerOptions(defaultWorkers).RateLimiter
	var last time.Duration
	for range 1000 {
		last = limiter.When(ask("a", "broken"))
	}
	if last != time.Minute {
		t.Errorf("a thousand failures lead to a pause of %s", last)
	}
	for i := range 300 {
		limiter.When(ask("a", fmt.Sprint(i)))
	}
	if first := limiter.When(ask("b", "x")); first != 5*time.Millisecond {
		t.Errorf("the first failure of another object leads to a pause of %s", first)
	}
	limiter.Forget(ask("a", "broken"))
	if first := limiter.When(ask("a", "broken")); first != 5*time.Millisecond {
		t.Errorf("got backoff %s after a success, want the initial one", first)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("timed out waiting for the queue")
		case <-tick.C:
		}
	}
}
