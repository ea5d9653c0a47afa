package capability

import (
	"context"
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

// CacheFactory creates a cache whose reads of optional kinds return a NoKindMatchError when the kind is not served. Caches of
// controller-runtime start an informer for each read, which never syncs for such a kind and blocks the worker until its timeout.
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
	return c.ifServed(object, func() error { return c.Cache.Get(ctx, key, object, opts...) })
}

// List implements client.Reader.
func (c *servedOnlyCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.ifServed(list, func() error { return c.Cache.List(ctx, list, opts...) })
}

func (c *servedOnlyCache) ifServed(object runtime.Object, read func() error) error {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	w := c.factory.watcher.Load()
	if err != nil || w == nil || !slices.Contains(w.options.Kinds, kind) {
		return read()
	}
	if !w.Current().Has(kind) {
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	return read()
}
