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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
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
			options.ByObject[objectmeta.New(kind)] = byObject(includeForeign)
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
		metadata.Labels, metadata.Annotations, metadata.OwnerReferences, metadata.Finalizers = nil, nil, nil, nil
	}
	return in, nil
}
