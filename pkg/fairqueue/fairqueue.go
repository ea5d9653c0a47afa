// Package fairqueue has a work queue for reconcile requests that is fair to namespaces.
package fairqueue

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a work queue of client-go that serves namespaces round-robin, those with the fewest active reconciles first. A
// namespace is limited to perNamespaceLimit workers: its reconciles may block on a server of the tenant, and must not delay other namespaces.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	namespaces *namespaceQueues
}

// New returns an empty Queue. The name is that of its metrics. perNamespaceLimit is the maximum number of concurrent reconciles of a
// namespace; less than 1 means 1.
func New(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], perNamespaceLimit int) *Queue {
	q := newNamespaceQueues(max(perNamespaceLimit, 1))
	return &Queue{namespaces: q, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
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
func (q *Queue) Get() (reconcile.Request, bool) {
	for {
		request, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown || q.namespaces.start(request) {
			return request, shutdown
		}
		q.TypedRateLimitingInterface.Done(request)
	}
}

// Done implements workqueue.TypedInterface.
func (q *Queue) Done(request reconcile.Request) {
	next, found := q.namespaces.done(request)
	q.TypedRateLimitingInterface.Done(request)
	if found {
		q.Add(next)
	}
}

// namespaceQueues holds the queued requests by namespace, and counts those that are being processed. It is the storage of a work queue, which calls
// Touch, Push, Len and Pop while it holds its own lock; that lock is never acquired while mu is held.
type namespaceQueues struct {
	perNamespaceLimit int // concurrent reconciles
	mu                sync.Mutex
	queued            map[string][]reconcile.Request
	order             []string                       // the namespaces that have queued requests
	processing        map[string]int                 // requests that are being reconciled or reserved
	waiting           map[string][]reconcile.Request // requests that are not queued because their namespace is at its limit
	reserved          sets.Set[reconcile.Request]    // requests that were waiting, and are queued again
}

func newNamespaceQueues(perNamespaceLimit int) *namespaceQueues {
	return &namespaceQueues{
		perNamespaceLimit: perNamespaceLimit,
		queued:            map[string][]reconcile.Request{},
		processing:        map[string]int{},
		waiting:           map[string][]reconcile.Request{},
		reserved:          sets.Set[reconcile.Request]{},
	}
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

// start counts a popped request as processing and returns true. If its namespace is at its limit, the request waits instead.
func (q *namespaceQueues) start(r reconcile.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := namespaceOf(r)
	switch {
	case q.reserved.Has(r):
		q.reserved.Delete(r)
	case q.processing[namespace] < q.perNamespaceLimit:
		q.processing[namespace]++
	default:
		if !slices.Contains(q.waiting[namespace], r) {
			q.waiting[namespace] = append(q.waiting[namespace], r)
		}
		return false
	}
	return true
}

// done records the end of a reconcile. It returns the first waiting request of the namespace, which takes the place of r.
func (q *namespaceQueues) done(r reconcile.Request) (next reconcile.Request, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := namespaceOf(r)
	if waiting := q.waiting[namespace]; len(waiting) > 0 {
		next = waiting[0]
		q.reserved.Insert(next)
		if q.waiting[namespace] = waiting[1:]; len(waiting) == 1 {
			delete(q.waiting, namespace)
		}
		return next, true
	}
	if q.processing[namespace]--; q.processing[namespace] <= 0 {
		delete(q.processing, namespace)
	}
	return next, false
}
