package component

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Narrow adds a cache of its own for one kind to the manager, which holds only what a selector admits, in all namespaces.
// The cache of the manager has one selector for each kind, and all components share it; and the API server lets an account
// that may only see objects of one name list and watch them only with a selection by that name. The kind must always be
// served.
func Narrow(mgr ctrl.Manager, object client.Object, by cache.ByObject, transform toolscache.TransformFunc) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{object: by}, DefaultTransform: transform,
	})
	if err != nil {
		return nil, fmt.Errorf("building a cache of %T: %w", object, err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding a cache of %T: %w", object, err)
	}
	return c, nil
}

// Routed is a client that reads some objects from other caches than that of the manager.
type Routed struct {
	client.Client
	// Route returns the reader of an object, or nil for that of the client.
	Route func(client.ObjectKey, client.Object) client.Reader
}

// Get implements client.Reader.
func (r *Routed) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if reader := r.Route(key, object); reader != nil {
		return reader.Get(ctx, key, object, opts...)
	}
	return r.Client.Get(ctx, key, object, opts...)
}
