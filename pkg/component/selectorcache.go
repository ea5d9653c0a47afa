package component

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache adds a cache of the objects that match a label selector to the manager. Reads of kinds without an informer fail.
func NewCache(mgr ctrl.Manager, label string, transform toolscache.TransformFunc) (cache.Cache, error) {
	selector, err := labels.Parse(label)
	if err != nil {
		return nil, fmt.Errorf("selecting by label %s: %w", label, err)
	}
	return addCache(mgr, cache.Options{DefaultLabelSelector: selector, DefaultTransform: transform, ReaderFailOnMissingInformer: true})
}

// NewSelectorCache adds a cache for one kind with its own selector in all namespaces to the manager, whose cache has one selector for each
// kind. The API server requires a field selector by name for list and watch if RBAC limits them to one name. The kind must always be
// served.
func NewSelectorCache(mgr ctrl.Manager, object client.Object, by cache.ByObject, transform toolscache.TransformFunc) (cache.Cache, error) {
	return addCache(mgr, cache.Options{ByObject: map[client.Object]cache.ByObject{object: by}, DefaultTransform: transform})
}

// addCache adds a cache with the REST configuration of the manager.
func addCache(mgr ctrl.Manager, options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Scheme, options.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	c, err := cache.New(mgr.GetConfig(), options)
	if err == nil {
		err = mgr.Add(c)
	}
	if err != nil {
		return nil, fmt.Errorf("adding a cache: %w", err)
	}
	return c, nil
}

// DelegatingClient is a client that reads some objects from other readers.
type DelegatingClient struct {
	client.Client
	// Route returns the reader for an object, or nil for the reader of the client.
	Route func(client.ObjectKey, client.Object) client.Reader
}

// Get implements client.Reader.
func (c *DelegatingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if reader := c.Route(key, object); reader != nil {
		return reader.Get(ctx, key, object, opts...)
	}
	return c.Client.Get(ctx, key, object, opts...)
}
