// Package caches adds caches to the manager for objects that its own cache does not contain, such as those of other owners.
package caches

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New adds a cache to the manager. It contains the objects that match a label selector, "" for all; the manager's own cache has one selector
// for each kind. If RBAC limits list and watch to one name, options must have the field selector metadata.name. The kinds must always be served.
func New(mgr ctrl.Manager, label string, options cache.Options) (cache.Cache, error) {
	selector, err := labels.Parse(label)
	if err != nil {
		return nil, fmt.Errorf("selecting by label %s: %w", label, err)
	}
	options.DefaultLabelSelector = selector
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

// DelegatingClient is a client that gets some objects from other readers. List always uses the reader of the client.
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

// StripMetadata is a transform that removes labels, annotations, owner references, finalizers and managed fields from metadata.
func StripMetadata(in any) (any, error) {
	if metadata, ok := in.(*metav1.PartialObjectMetadata); ok {
		metadata.Labels, metadata.Annotations, metadata.OwnerReferences, metadata.Finalizers, metadata.ManagedFields = nil, nil, nil, nil, nil
	}
	return in, nil
}
