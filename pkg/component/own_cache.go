package component

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewCache makes a cache beside that of the manager, for objects with a label, or all where it is empty, as the transform leaves them.
// What no informer was made for is not read through it. The caller adds it to the manager.
func NewCache(mgr ctrl.Manager, label string, transform toolscache.TransformFunc) (cache.Cache, error) {
	selector, err := labels.Parse(label)
	if err != nil {
		return nil, fmt.Errorf("selecting by label %s: %w", label, err)
	}
	out, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: selector, DefaultTransform: transform, ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	return out, nil
}
