package reconciler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// minBackoff and maxBackoff limit the exponential back-off after an error. A fix of the cause takes effect after maxBackoff at the latest.
	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Minute
	// defaultWorkers is the number of concurrent reconciles of a controller.
	defaultWorkers = 4
)

// ControllerOptions are the options of every controller of the operator: a queue that is fair to namespaces, each of which has at most
// perNamespaceLimit reconciles, and a back-off per object. There is no overall rate limit, because one tenant could exhaust it for all others.
func ControllerOptions(workers, perNamespaceLimit int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return newFairQueue(name, limiter, max(perNamespaceLimit, 1))
		},
	}
}

// NewController returns the builder of a controller with ControllerOptions that watches the sources.
func NewController(mgr ctrl.Manager, name string, sources ...source.Source) *builder.Builder {
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(ControllerOptions(defaultWorkers, defaultWorkers-1))
	for _, s := range sources {
		b.WatchesRawSource(s)
	}
	return b
}

// fairQueue is a work queue of client-go that serves namespaces round-robin, those with the fewest active reconciles first. A
// namespace is limited to perNamespaceLimit workers: its reconciles may block on a server of the tenant, and must not delay other namespaces.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	namespaces *namespaceQueues
}

func newFairQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], perNamespaceLimit int) *fairQueue {
	q := newNamespaceQueues(perNamespaceLimit)
	return &fairQueue{namespaces: q, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			Name: name,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
					Name: name, Queue: q,
				}),
			}),
		})}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (reconcile.Request, bool) {
	for {
		request, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown || q.namespaces.start(request) {
			return request, shutdown
		}
		// A request that is added while it is being processed is queued again by Done.
		q.Add(request)
		q.TypedRateLimitingInterface.Done(request)
	}
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue) Done(request reconcile.Request) {
	q.namespaces.done(request)
	q.TypedRateLimitingInterface.Done(request)
}

// namespaceQueues holds the queued requests by namespace, and counts those that are being processed. It is the storage of a work queue, which calls
// Touch, Push, Len and Pop while it holds its own lock; that lock is never acquired while mu is held.
type namespaceQueues struct {
	perNamespaceLimit int // concurrent reconciles
	mu                sync.Mutex
	changed           *sync.Cond
	queued            map[string][]reconcile.Request
	order             []string       // the namespaces that have queued requests
	processing        map[string]int // requests that are being reconciled
}

func newNamespaceQueues(perNamespaceLimit int) *namespaceQueues {
	q := &namespaceQueues{
		perNamespaceLimit: perNamespaceLimit,
		queued:            map[string][]reconcile.Request{},
		processing:        map[string]int{},
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// namespaceOf returns the namespace of a request, or the name for cluster-scoped objects, which include namespaces.
func namespaceOf(r reconcile.Request) string { return cmp.Or(r.Namespace, r.Name) }

// Touch implements workqueue.Queue.
func (q *namespaceQueues) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (q *namespaceQueues) Push(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := namespaceOf(r)
	if len(q.queued[namespace]) == 0 {
		q.order = append(q.order, namespace)
	}
	q.queued[namespace] = append(q.queued[namespace], r)
	q.changed.Broadcast()
}

// Len implements workqueue.Queue.
func (q *namespaceQueues) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, requests := range q.queued {
		n += len(requests)
	}
	return n
}

// Pop implements workqueue.Queue.
func (q *namespaceQueues) Pop() reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := 0
	for i, namespace := range q.order {
		if q.processing[namespace] < q.processing[q.order[next]] {
			next = i
		}
	}
	namespace := q.order[next]
	q.order = slices.Delete(q.order, next, next+1)
	request := q.queued[namespace][0]
	if rest := q.queued[namespace][1:]; len(rest) > 0 {
		q.queued[namespace] = rest
		q.order = append(q.order, namespace)
	} else {
		delete(q.queued, namespace)
	}
	return request
}

// start blocks while the namespace of a popped request is at its limit, then counts the request as processing and returns true. It returns
// false instead if a request of a namespace below the limit is queued.
func (q *namespaceQueues) start(r reconcile.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := namespaceOf(r)
	for q.processing[namespace] >= q.perNamespaceLimit {
		if slices.ContainsFunc(q.order, func(other string) bool { return q.processing[other] < q.perNamespaceLimit }) {
			return false
		}
		q.changed.Wait()
	}
	q.processing[namespace]++
	return true
}

// done records the end of a reconcile.
func (q *namespaceQueues) done(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := namespaceOf(r)
	if q.processing[namespace]--; q.processing[namespace] <= 0 {
		delete(q.processing, namespace)
	}
	q.changed.Broadcast()
}
