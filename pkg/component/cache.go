package component

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// CacheNeed selects the objects of a kind that a component reads from the cache.
type CacheNeed struct {
	// Kind of the objects.
	Kind schema.GroupVersionKind
	// Namespace limits the cache to one namespace; "" means all. It must be "" for cluster-scoped kinds, and is ignored for
	// custom resources.
	Namespace string
	// FullObjects caches whole objects, for kinds whose spec or status is read; otherwise only their metadata is cached.
	FullObjects bool
	// IncludeForeign caches all objects, not only those with OperatorLabel. Foreign objects of built-in kinds that are cached as metadata
	// lose labels, annotations, owner references and finalizers, because there may be thousands. Custom resources with FullObjects always
	// include foreign objects.
	IncludeForeign bool
}

// CacheOptions merges the needs of the enabled components: a kind is cached in the union of their namespaces, and without the label
// selector if one of the needs includes foreign objects. The transform applies to every object. Other kinds are cached without limits.
//
// Custom resources get their selector in NewInformer instead of ByObject, because the cache looks up the scope of each kind in ByObject and
// fails to start if one is not served.
func CacheOptions(enabled []Component, transform toolscache.TransformFunc) cache.Options {
	managedOnly := capability.NewSet()
	for _, c := range enabled {
		if c.Transform != nil {
			transform = chainTransforms(c.Transform, transform)
		}
	}
	options := cache.Options{DefaultTransform: chainTransforms(stripForeign, transform), ByObject: map[client.Object]cache.ByObject{}}
	for kind, includeForeign := range mergeNeeds(enabled) {
		if !isCustomKind(kind) {
			// The cache looks up ByObject by kind, so metadata objects match typed objects too.
			options.ByObject[capability.MetadataOf(kind)] = byObject(includeForeign)
		} else if !slices.Contains(slices.Collect(maps.Values(includeForeign)), true) {
			managedOnly.Insert(kind)
		}
	}
	// Typed objects have no kind in their TypeMeta, so custom resources that are cached as typed objects get no selector.
	options.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		selector := ""
		if managedOnly.Has(obj.GetObjectKind().GroupVersionKind()) {
			selector = managedSelector().String()
		}
		if isCustomResource(obj) {
			lw = listWatchCustomResources(lw, selector, clock.RealClock{})
		}
		maps.Copy(indexers, apply.OwnerIndexers())
		return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
	}
	return options
}

// mergeNeeds returns the namespaces in which each kind is cached, "" for all, and whether foreign objects are included there.
func mergeNeeds(enabled []Component) map[schema.GroupVersionKind]map[string]bool {
	needs := map[schema.GroupVersionKind]map[string]bool{}
	for _, c := range enabled {
		for _, need := range c.Caches {
			if needs[need.Kind] == nil {
				needs[need.Kind] = map[string]bool{}
			}
			needs[need.Kind][need.Namespace] = needs[need.Kind][need.Namespace] || need.IncludeForeign
		}
	}
	return needs
}

// byObject returns the configuration of the cache for one kind. It omits namespaces that the rule for all namespaces covers, because each
// namespace needs a watch.
func byObject(includeForeign map[string]bool) cache.ByObject {
	foreignEverywhere, everywhere := includeForeign[""]
	if foreignEverywhere {
		return cache.ByObject{}
	}
	options := cache.ByObject{Namespaces: map[string]cache.Config{}}
	for namespace, foreign := range includeForeign {
		switch {
		case foreign:
			options.Namespaces[namespace] = cache.Config{}
		case namespace == "" || !everywhere:
			options.Namespaces[namespace] = cache.Config{LabelSelector: managedSelector()}
		}
	}
	if everywhere && len(options.Namespaces) == 1 {
		return cache.ByObject{Label: managedSelector()} // also for cluster-scoped kinds
	}
	return options
}

// FullObjectKinds returns the kinds that at least one component caches as full objects. All components must read them as such, because
// reading metadata would start a second informer.
func FullObjectKinds(enabled []Component) []schema.GroupVersionKind {
	kinds := capability.NewSet()
	for _, c := range enabled {
		for _, need := range c.Caches {
			if need.FullObjects {
				kinds.Insert(need.Kind)
			}
		}
	}
	return kinds.UnsortedList()
}

// NewCache adds a cache to the manager. It contains the objects that match a label selector, "" for all; the manager's own cache has one selector
// for each kind. If RBAC limits list and watch to one name, options must have the field selector metadata.name. The kinds must always be served.
func NewCache(mgr ctrl.Manager, label string, options cache.Options) (cache.Cache, error) {
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

// DelegatingClient is a client that gets some objects from other readers. List always uses its own.
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

func managedSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{names.OperatorLabel: names.OperatorName})
}

// chainTransforms returns a transform that runs both.
func chainTransforms(first, then toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		out, err := first(in)
		if err != nil {
			return nil, err
		}
		return then(out)
	}
}

// stripForeign strips foreign objects of built-in kinds that are cached as metadata. Their annotations may contain whole objects: `kubectl
// apply` copies a Secret into one.
func stripForeign(in any) (any, error) {
	if metadata, ok := in.(*metav1.PartialObjectMetadata); ok && metadata.Labels[names.OperatorLabel] != names.OperatorName && !isCustomResource(metadata) {
		stripLists(metadata)
	}
	return in, nil
}

// StripMetadata is a transform that removes labels, annotations, owner references, finalizers and managed fields from metadata.
func StripMetadata(in any) (any, error) {
	if metadata, ok := in.(*metav1.PartialObjectMetadata); ok {
		stripLists(metadata)
		metadata.ManagedFields = nil
	}
	return in, nil
}

func stripLists(metadata *metav1.PartialObjectMetadata) {
	metadata.Labels, metadata.Annotations, metadata.OwnerReferences, metadata.Finalizers = nil, nil, nil, nil
}
