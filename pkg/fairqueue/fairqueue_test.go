package fairqueue

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// newQueue returns a queue and shuts it down after the test.
func newQueue(t *testing.T, perNamespaceLimit int) *Queue {
	t.Helper()
	q := New("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), perNamespaceLimit)
	t.Cleanup(q.ShutDown)
	return q
}

// The first request of a namespace precedes many queued requests of another.
func TestQueueIsFairToNamespaces(t *testing.T) {
	q := newQueue(t, 3)
	for i := range 300 {
		q.Add(request("busy", fmt.Sprintf("failing-%03d", i)))
	}
	q.Add(request("idle", "first"))
	q.Add(request("idle", "second"))
	q.Add(request("", "node")) // cluster-scoped
	if q.Len() != 303 {
		t.Fatalf("got %d queued requests, want 303", q.Len())
	}
	var got []string
	for range 7 {
		r, _ := q.Get()
		got = append(got, r.String())
		q.Done(r)
	}
	want := []string{"busy/failing-000", "idle/first", "/node", "busy/failing-001", "idle/second", "busy/failing-002", "busy/failing-003"}
	if !slices.Equal(got, want) {
		t.Errorf("got order %q, want %q", got, want)
	}
}

// A namespace at its limit does not delay others, and its requests wait in order.
func TestQueueLimitsReconcilesOfNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), 2)
		defer q.ShutDown()
		var mu sync.Mutex
		var got []string
		for range 4 { // workers whose reconciles last until the test calls Done
			go func() {
				for r, shutdown := q.Get(); !shutdown; r, shutdown = q.Get() {
					mu.Lock()
					got = append(got, r.String())
					mu.Unlock()
				}
			}()
		}
		add := func(namespace string, names ...string) {
			for _, name := range names {
				q.Add(request(namespace, name))
				synctest.Wait()
			}
		}
		add("slow", "a", "b", "c", "d")
		add("other", "x")
		add("slow", "d", "c") // already waiting
		q.Done(request("slow", "b"))
		synctest.Wait()
		q.Done(request("slow", "a"))
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"slow/a", "slow/b", "other/x", "slow/c", "slow/d"}; !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
	})
}

// One worker is reserved for other namespaces.
func TestQueueReservesWorkerForOtherNamespaces(t *testing.T) {
	const workers = 4
	q := newQueue(t, workers-1)
	started, finish := make(chan reconcile.Request), make(chan struct{})
	var workerGroup sync.WaitGroup
	for range workers {
		workerGroup.Go(func() {
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
		q.Add(request("busy", fmt.Sprintf("slow-%03d", i)))
	}
	for range workers - 1 {
		<-started
	}
	q.Add(request("idle", "first"))
	if r := <-started; r != request("idle", "first") {
		t.Errorf("the last worker got %s, want the request of the idle namespace", r)
	}
	// Workers are released, and process the remaining requests.
	go func() {
		for range started {
		}
	}()
	close(finish)
	eventually(t, func() bool { return q.Len() == 0 })
	q.ShutDown()
	workerGroup.Wait()
	close(started)
}

// A single worker is not reserved for other namespaces.
func TestQueueWithSingleWorker(t *testing.T) {
	q := newQueue(t, 0)
	for i := range 3 {
		q.Add(request("only", fmt.Sprint(i)))
	}
	for range 3 {
		r, _ := q.Get()
		q.Done(r)
	}
	if q.Len() != 0 {
		t.Errorf("got %d queued requests, want none", q.Len())
	}
}

// A request that is added while it is processed is processed again.
func TestRequestAddedDuringProcessingIsRepeated(t *testing.T) {
	q := newQueue(t, 3)
	q.Add(request("a", "x"))
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

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatal("timed out waiting for the queue")
		case <-tick.C:
		}
	}
}
