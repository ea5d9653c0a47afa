package reconciler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryMin and retryMax bound the pauses of the exponential back-off after an error. A minute is how long a user waits who has
// just removed the cause.
const retryMin, retryMax = 5 * time.Millisecond, time.Minute

// workers is how many reconciles a controller runs at a time.
const workers = 4

// ControllerOptions are those of every controller of this program: a queue that is fair to namespaces, and a back-off of at most
// a minute for each object. There is no limit for all objects together, which those of one tenant would use up for the others.
func ControllerOptions() controller.Options { return ControllerOptionsOf(workers) }

// ControllerOptionsOf is ControllerOptions with another number of workers.
func ControllerOptionsOf(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryMin, retryMax),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return newFairQueue(name, limiter, max(workers-1, 1))
		},
	}
}

// ControllerOptionsFor is ControllerOptions for a controller that is not built by a builder.
func ControllerOptionsFor(r reconcile.Reconciler) controller.Options {
	options := ControllerOptions()
	options.Reconciler = ClassifyErrors(r)
	return options
}

// fairQueue is client-go's work queue with two rules. The next request is one of the namespace of which the fewest are being
// worked on, and among these namespaces take turns. And the last worker is kept for another namespace, because a reconcile may
// wait for a server of the tenant.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	tenants *tenants
}

func newFairQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], share int) *fairQueue {
	t := newTenants(share)
	return &fairQueue{tenants: t, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			Name: name,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
					Name: name, Queue: t,
				}),
			}),
		})}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (reconcile.Request, bool) {
	for {
		request, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown || q.tenants.admit(request) {
			return request, shutdown
		}
		// Added while it is being processed, a request is queued again by Done.
		q.Add(request)
		q.TypedRateLimitingInterface.Done(request)
	}
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue) Done(request reconcile.Request) {
	q.tenants.done(request)
	q.TypedRateLimitingInterface.Done(request)
}

// tenants are the requests that wait, by namespace, and how many of each are being worked on. It is the storage of a work queue,
// which calls Touch, Push, Len and Pop under its own lock; that one is never taken under the lock here.
type tenants struct {
	share   int // how many requests of one namespace are worked on at a time
	mu      sync.Mutex
	changed *sync.Cond
	waiting map[string][]reconcile.Request
	turns   []string       // the namespaces that have requests waiting
	taken   map[string]int // requests that workers have, also those that wait for their turn in Get
	running map[string]int // requests that are worked on
}

func newTenants(share int) *tenants {
	t := &tenants{share: share, waiting: map[string][]reconcile.Request{}, taken: map[string]int{}, running: map[string]int{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// tenant of a request: its namespace, or its name for objects without one, of which some are namespaces.
func tenant(r reconcile.Request) string { return cmp.Or(r.Namespace, r.Name) }

// Touch implements workqueue.Queue.
func (t *tenants) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (t *tenants) Push(r reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whose := tenant(r)
	if len(t.waiting[whose]) == 0 {
		t.turns = append(t.turns, whose)
	}
	t.waiting[whose] = append(t.waiting[whose], r)
	t.changed.Broadcast()
}

// Len implements workqueue.Queue.
func (t *tenants) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, requests := range t.waiting {
		n += len(requests)
	}
	return n
}

// Pop implements workqueue.Queue.
func (t *tenants) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := 0
	for i, whose := range t.turns {
		if t.taken[whose] < t.taken[t.turns[turn]] {
			turn = i
		}
	}
	whose := t.turns[turn]
	t.turns = slices.Delete(t.turns, turn, turn+1)
	next := t.waiting[whose][0]
	if rest := t.waiting[whose][1:]; len(rest) > 0 {
		t.waiting[whose] = rest
		t.turns = append(t.turns, whose)
	} else {
		delete(t.waiting, whose)
	}
	t.taken[whose]++
	return next
}

// admit returns true when the request may be worked on. While its namespace has its share, it waits; and it returns false
// when a request of a namespace that has not has come meanwhile.
func (t *tenants) admit(r reconcile.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	whose := tenant(r)
	for t.running[whose] >= t.share {
		if slices.ContainsFunc(t.turns, func(other string) bool { return t.running[other] < t.share }) {
			drop(t.taken, whose)
			return false
		}
		t.changed.Wait()
	}
	t.running[whose]++
	return true
}

// done notes the end of a reconcile.
func (t *tenants) done(r reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	drop(t.taken, tenant(r))
	drop(t.running, tenant(r))
	t.changed.Broadcast()
}

func drop(counts map[string]int, whose string) {
	if counts[whose]--; counts[whose] <= 0 {
		delete(counts, whose)
	}
}
