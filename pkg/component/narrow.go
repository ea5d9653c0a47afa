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

// NewCache makes a cache beside that of the manager, for objects with a label, or all where it is empty, as the transform leaves them.
// What no informer was made for is not read through it. The caller adds it to the manager.
func NewCache(mgr ctrl.Manager, label string, transform toolscache.TransformFunc) (cache.Cache, error) {
	selector, err := labels.Parse(label)
	if err != nil {
		return nil, fmt.Errorf("selecting by label %s: %w", label, err)
	}
	return beside(mgr, cache.Options{DefaultLabelSelector: selector, DefaultTransform: transform, ReaderFailOnMissingInformer: true})
}

// NewSelectorCache adds a cache of its own for one kind to the manager, which holds only what a selector admits, in all namespaces.
// The cache of the manager has one selector for each kind, and all components share it; and the API server lets an account
// that may only see objects of one name list and watch them only with a selection by that name. The kind must always be
// served.
func NewSelectorCache(mgr ctrl.Manager, object client.Object, by cache.ByObject, transform toolscache.TransformFunc) (cache.Cache, error) {
	c, err := beside(mgr, cache.Options{ByObject: map[client.Object]cache.ByObject{object: by}, DefaultTransform: transform})
	if err == nil {
		err = mgr.Add(c)
	}
	if err != nil {
		return nil, fmt.Errorf("caching %T: %w", object, err)
	}
	return c, nil
}

// beside makes a cache with the connection of the manager.
func beside(mgr ctrl.Manager, options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Scheme, options.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	c, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	return c, nil
}

// DelegatingClient is a client that reads some objects from other caches than that of the manager.
type DelegatingClient struct {
	client.Client
	// Route returns the reader of an object, or nil for that of the client.
	Route func(client.ObjectKey, client.Object) client.Reader
}

// Get implements client.Reader.
func (r *DelegatingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if reader := r.Route(key, object); reader != nil {
		return reader.Get(ctx, key, object, opts...)
	}
	return r.Client.Get(ctx, key, object, opts...)
}
