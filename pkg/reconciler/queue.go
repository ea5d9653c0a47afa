package reconciler

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/fairqueue"
)

const (
	// minBackoff and maxBackoff limit the exponential back-off after an error. A fix of the cause takes effect after maxBackoff at the latest.
	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Minute
	// defaultWorkers is the number of concurrent reconciles of a controller.
	defaultWorkers = 4
)

// ControllerOptions returns the options of every controller of the operator: a queue that is fair to namespaces, each of which has at most
// perNamespaceLimit concurrent reconciles, and a back-off per object. There is no overall rate limit, because one tenant could exhaust it
// for all others.
func ControllerOptions(workers, perNamespaceLimit int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return fairqueue.New(name, limiter, perNamespaceLimit)
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
