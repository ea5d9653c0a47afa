package managercache

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// NewFunc returns a function for manager.Options.NewCache. Its caches return a NoKindMatchError for reads of an optional kind that is not
// served. A cache of controller-runtime would start an informer that never syncs, and the read would block the worker until its timeout.
func NewFunc(optional capability.Set, served func() capability.Set) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("creating the cache: %w", err)
		}
		return &servedOnlyCache{c, options.Scheme, optional, served}, nil
	}
}

type servedOnlyCache struct {
	cache.Cache
	scheme   *runtime.Scheme
	optional capability.Set
	served   func() capability.Set
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
	if err != nil || !c.optional.Has(kind) || c.served().Has(kind) {
		return nil // the cache also returns err
	}
	return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}
