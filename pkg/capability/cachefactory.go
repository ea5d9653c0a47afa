package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// CacheFactory creates a cache whose reads of optional kinds return a NoKindMatchError when the kind is not served, or is removed during
// the read. Caches of controller-runtime start an informer for each read, which never syncs for a removed kind and blocks the worker.
type CacheFactory struct {
	watcher atomic.Pointer[Watcher]
}

// NewCache implements cache.NewCacheFunc. Its errors are those of cache.New.
func (r *CacheFactory) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &servedOnlyCache{Cache: c, scheme: options.Scheme, factory: r}, nil
}

// SetWatcher sets the watcher of optional kinds. Before that, no read is limited.
func (r *CacheFactory) SetWatcher(w *Watcher) { r.watcher.Store(w) }

type servedOnlyCache struct {
	cache.Cache
	scheme  *runtime.Scheme
	factory *CacheFactory
}

// Get implements client.Reader.
func (c *servedOnlyCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return c.whileServed(ctx, object, func(ctx context.Context) error { return c.Cache.Get(ctx, key, object, opts...) })
}

// List implements client.Reader.
func (c *servedOnlyCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.whileServed(ctx, list, func(ctx context.Context) error { return c.Cache.List(ctx, list, opts...) })
}

func (c *servedOnlyCache) whileServed(ctx context.Context, object runtime.Object, read func(context.Context) error) error {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	w := c.factory.watcher.Load()
	if err != nil || w == nil || !slices.Contains(w.options.Kinds, kind) {
		return read(ctx)
	}
	noKindMatch := &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.OnChange(ctx, func(s Set) {
		if !s.Has(kind) {
			stop(noKindMatch)
		}
	})
	if err = ctx.Err(); err == nil {
		err = read(ctx)
	}
	if errors.Is(context.Cause(ctx), noKindMatch) {
		return noKindMatch
	}
	return err
}
