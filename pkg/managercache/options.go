package managercache

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// Need selects the objects of a kind that a component reads from the cache.
type Need struct {
	// Kind of the objects.
	Kind schema.GroupVersionKind
	// Namespace limits the cache to one namespace; "" means all. It must be "" for cluster-scoped kinds, and is ignored for
	// custom resources.
	Namespace string
	// FullObjects caches whole objects, for kinds whose spec or status is read; otherwise only their metadata is cached.
	FullObjects bool
	// IncludeForeign caches all objects, not only those with OperatorLabel. Foreign objects of built-in kinds that are cached as metadata
	// lose labels, annotations, owner references and finalizers, because there may be thousands. Custom resources that are read as typed
	// objects always include foreign objects.
	IncludeForeign bool
}

// Options merges the needs of the enabled components: a kind is cached in the union of their namespaces. A need that includes foreign
// objects removes the label selector in its namespace; for a custom resource, everywhere. The transforms apply to every object, in order.
// Other kinds are cached without limits. The function onRelist is called when a CRD may have changed.
//
// Custom resources get their selector in NewInformer instead of ByObject, because the cache looks up the scope of each kind in ByObject and
// fails to start if one is not served.
func Options(needs []Need, onRelist func(), transforms ...toolscache.TransformFunc) cache.Options {
	managedOnly := sets.New[schema.GroupVersionKind]()
	options := cache.Options{DefaultTransform: chain(append([]toolscache.TransformFunc{stripForeign}, transforms...)), ByObject: map[client.Object]cache.ByObject{}}
	for kind, includeForeign := range mergeNeeds(needs) {
		if !IsCustomKind(kind) {
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
			lw = listWatchCustomResources(lw, selector, clock.RealClock{}, onRelist)
		}
		maps.Copy(indexers, apply.OwnerIndexers())
		return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
	}
	return options
}

// mergeNeeds returns the namespaces in which each kind is cached, "" for all, and whether foreign objects are included there.
func mergeNeeds(needs []Need) map[schema.GroupVersionKind]map[string]bool {
	merged := map[schema.GroupVersionKind]map[string]bool{}
	for _, need := range needs {
		if merged[need.Kind] == nil {
			merged[need.Kind] = map[string]bool{}
		}
		merged[need.Kind][need.Namespace] = merged[need.Kind][need.Namespace] || need.IncludeForeign
	}
	return merged
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
func FullObjectKinds(needs []Need) []schema.GroupVersionKind {
	kinds := sets.New[schema.GroupVersionKind]()
	for _, need := range needs {
		if need.FullObjects {
			kinds.Insert(need.Kind)
		}
	}
	return kinds.UnsortedList()
}

func managedSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{names.OperatorLabel: names.OperatorName})
}

// chain returns a transform that runs all transforms until one fails.
func chain(transforms []toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		var err error
		for _, transform := range transforms {
			if object, err = transform(object); err != nil {
				return nil, err
			}
		}
		return object, nil
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
