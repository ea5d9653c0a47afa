package component

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
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
	// optional kinds.
	Namespace string
	// FullObjects caches whole objects, for kinds whose spec or status is read; otherwise only their metadata is cached.
	FullObjects bool
	// IncludeForeign caches all objects, not only those with OperatorLabel. Foreign objects that are cached as metadata keep
	// only their identity and version, because there may be thousands. Optional kinds with FullObjects always include foreign objects.
	IncludeForeign bool
}

// cacheScope is the merged need of all components for one kind.
type cacheScope struct {
	// includeForeign is true for namespaces whose foreign objects are cached too. The key "" means all namespaces.
	includeForeign map[string]bool
	fullObjects    bool
}

// CacheOptions merges the needs of the enabled components: a kind is cached in the union of their namespaces, and without the label
// selector if one of them includes foreign objects. The transform applies to every object. Other kinds are cached without limits.
//
// Optional kinds (of package capability, or required or used by a component) get their selector in NewInformer instead of ByObject,
// because the cache looks up the scope of each kind in ByObject and fails to start if one is not served.
func CacheOptions(enabled []Component, transform toolscache.TransformFunc) cache.Options {
	optional, managedOnly := WatchedKinds(enabled), map[schema.GroupVersionKind]bool{}
	for _, c := range enabled {
		transform = chainTransforms(c.Transform, transform)
	}
	options := cache.Options{DefaultTransform: transform, ByObject: map[client.Object]cache.ByObject{}}
	for kind, scope := range mergeNeeds(enabled) {
		if slices.Contains(optional, kind) {
			managedOnly[kind] = !slices.Contains(slices.Collect(maps.Values(scope.includeForeign)), true)
		} else {
			// The cache looks up ByObject by kind, so metadata objects match typed objects too.
			options.ByObject[capability.MetadataOf(kind)] = scope.byObject(transform)
		}
	}
	// Typed objects do not carry their kind, so optional kinds that are cached as such are not selected.
	options.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		selector := ""
		if managedOnly[obj.GetObjectKind().GroupVersionKind()] {
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

// byObject returns the configuration of the cache. One rule for all namespaces is set without Namespaces, which needs a watch for each.
func (s cacheScope) byObject(transform toolscache.TransformFunc) cache.ByObject {
	by := cache.ByObject{Namespaces: map[string]cache.Config{}}
	for namespace, includeForeign := range s.includeForeign {
		config := cache.Config{}
		if !includeForeign {
			config.LabelSelector = managedSelector()
		} else if !s.fullObjects {
			config.Transform = chainTransforms(stripForeign, transform)
		}
		by.Namespaces[namespace] = config
	}
	if all, found := by.Namespaces[""]; found && len(by.Namespaces) == 1 {
		return cache.ByObject{Label: all.LabelSelector, Transform: all.Transform}
	}
	return by
}

// FullObjectKinds returns the kinds that at least one component caches as full objects. All components must read them as such, because
// reading metadata would start a second informer.
func FullObjectKinds(enabled []Component) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for kind, scope := range mergeNeeds(enabled) {
		if scope.fullObjects {
			out = append(out, kind)
		}
	}
	return out
}

func mergeNeeds(enabled []Component) map[schema.GroupVersionKind]cacheScope {
	out := map[schema.GroupVersionKind]cacheScope{}
	for _, c := range enabled {
		for _, need := range c.Caches {
			scope := out[need.Kind]
			if scope.includeForeign == nil {
				scope.includeForeign = map[string]bool{}
			}
			scope.fullObjects = scope.fullObjects || need.FullObjects
			scope.includeForeign[need.Namespace] = scope.includeForeign[need.Namespace] || need.IncludeForeign
			out[need.Kind] = scope
		}
	}
	for _, scope := range out {
		if foreignEverywhere, all := scope.includeForeign[""]; all {
			// Drop namespaces that the rule for all namespaces covers.
			maps.DeleteFunc(scope.includeForeign, func(namespace string, includeForeign bool) bool {
				return namespace != "" && (foreignEverywhere || !includeForeign)
			})
		}
	}
	return out
}

func managedSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{names.OperatorLabel: names.OperatorName})
}

// chainTransforms returns a transform that runs both. Either may be nil.
func chainTransforms(first, then toolscache.TransformFunc) toolscache.TransformFunc {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(in any) (any, error) {
		out, err := first(in)
		if err != nil {
			return nil, err
		}
		return then(out)
	}
}

// stripForeign strips the metadata of foreign objects. Their annotations may contain whole objects: `kubectl apply` copies a Secret into
// one.
func stripForeign(in any) (any, error) {
	if metadata, ok := in.(*metav1.PartialObjectMetadata); ok && metadata.Labels[names.OperatorLabel] != names.OperatorName {
		stripLists(metadata)
	}
	return in, nil
}

// StripMetadata is a transform of metadata that keeps only name, namespace, uid, resourceVersion and the like.
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
