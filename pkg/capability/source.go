package capability

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// Kind returns a source of the objects of an optional kind. It watches while the kind is served, and removes the informer afterwards. A nil
// object selects a metadata-only watch. The controller does not wait until the source is synced. The kind must be one of Options.Kinds.
func (w *Watcher) Kind(from cache.Cache, kind schema.GroupVersionKind, object client.Object, h handler.EventHandler, predicates ...predicate.Predicate) source.Source {
	if object == nil {
		object = objectmeta.New(kind)
	}
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		var stop context.CancelFunc
		w.OnChange(ctx, func(s Set) {
			switch served := s.Has(kind); {
			case served && stop == nil:
				var watchCtx context.Context
				watchCtx, stop = context.WithCancel(ctx)
				_ = source.Kind(from, object, h, predicates...).Start(watchCtx, queue) // fails only without an object or a handler
			case !served && stop != nil:
				stop()
				stop = nil
				_ = from.RemoveInformer(ctx, object) // fails only for a type that is not in the scheme
			}
		})
		return nil
	})
}
