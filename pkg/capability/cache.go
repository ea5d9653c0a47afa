package capability

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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

// NewCache returns a cache whose reads of optional kinds return a NoKindMatchError when the kind is not served. A cache of controller-runtime
// would start an informer that never syncs, and the read would block the worker until its timeout.
func (w *Watcher) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the cache: %w", err)
	}
	return &servedOnlyCache{c, options.Scheme, w}, nil
}

type servedOnlyCache struct {
	cache.Cache
	scheme  *runtime.Scheme
	watcher *Watcher
}

// Get implements client.Reader.
func (c *servedOnlyCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if err := c.checkServed(object); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, object, opts...)
}

// List implements client.Reader.
func (c *servedOnlyCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.checkServed(list); err != nil {
		return err
	}
	return c.Cache.List(ctx, list, opts...)
}

func (c *servedOnlyCache) checkServed(object runtime.Object) error {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	if err != nil || !slices.Contains(c.watcher.options.Kinds, kind) || c.watcher.Current().Has(kind) {
		return nil // the cache also returns err
	}
	return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}
