package component

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// CacheNeed says which objects of a kind a component keeps in memory.
type CacheNeed struct {
	// Kind of the objects.
	Kind schema.GroupVersionKind
	// Namespace limits them to one namespace; "" is all. It must be "" for cluster-scoped kinds, and has no effect on
	// optional kinds.
	Namespace string
	// FullObjects keeps the whole objects, for kinds whose spec or status is read; otherwise their metadata is kept.
	FullObjects bool
	// IncludeForeign keeps the foreign objects too; otherwise only those with our OperatorLabel. Of foreign objects that are
	// kept as metadata no more remains than what identifies them and their version: there may be thousands. Optional kinds
	// that are kept whole are always kept in full number.
	IncludeForeign bool
}

// limits is what remains of the needs for one kind after merging.
type limits struct {
	// everything records for each namespace that is seen, "" for all of them, whether the foreign objects are kept too.
	everything map[string]bool
	whole      bool
}

// CacheOptions merges the needs of the given components, which are the enabled ones: a kind is kept in the union of
// the namespaces, and unselected where one of them needs everything. Every object passes through transform. Kinds that
// no component declared are not limited.
//
// Optional kinds (of package capability, or required or used by a component) are selected when their informer is made and not
// in ByObject, because the cache asks for the scope of each kind there and fails the start for one that is not served.
func CacheOptions(enabled []Component, transform toolscache.TransformFunc) cache.Options {
	optional := FollowedKinds(enabled)
	selected := map[schema.GroupVersionKind]bool{}
	for _, c := range enabled {
		transform = chain(c.Transform, transform)
	}
	options := cache.Options{DefaultTransform: transform, ByObject: map[client.Object]cache.ByObject{}}
	for kind, limit := range merge(enabled) {
		switch {
		case slices.Contains(optional, kind):
			selected[kind] = !slices.Contains(slices.Collect(maps.Values(limit.everything)), true)
		case limit.everything[""] && limit.whole: // the default
		default:
			// The cache tells its settings apart by kind; metadata stands for the typed object as well.
			options.ByObject[capability.MetadataOf(kind)] = limit.byObject(transform)
		}
	}
	options.NewInformer = informerFor(selected)
	return options
}

// byObject is the configuration of the cache. Where one rule holds everywhere, it stands alone: an informer for each namespace costs
// a watch.
func (l limits) byObject(transform toolscache.TransformFunc) cache.ByObject {
	if everything, all := l.everything[""]; all && len(l.everything) == 1 {
		one := l.config(everything, transform)
		return cache.ByObject{Label: one.LabelSelector, Transform: one.Transform}
	}
	by := cache.ByObject{Namespaces: map[string]cache.Config{}}
	for namespace, everything := range l.everything {
		by.Namespaces[namespace] = l.config(everything, transform)
	}
	return by
}

func (l limits) config(everything bool, transform toolscache.TransformFunc) cache.Config {
	switch {
	case !everything:
		return cache.Config{LabelSelector: ours()}
	case !l.whole:
		return cache.Config{Transform: chain(identities, transform)}
	default:
		return cache.Config{}
	}
}

// FullObjectKinds returns the kinds that at least one component keeps whole. All components read them as whole objects
// then, since a second representation is a second informer.
func FullObjectKinds(enabled []Component) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, c := range enabled {
		for _, need := range c.Caches {
			if need.FullObjects && !slices.Contains(out, need.Kind) {
				out = append(out, need.Kind)
			}
		}
	}
	return out
}

func merge(enabled []Component) map[schema.GroupVersionKind]limits {
	out := map[schema.GroupVersionKind]limits{}
	for _, c := range enabled {
		for _, need := range c.Caches {
			limit, known := out[need.Kind]
			if !known {
				limit.everything = map[string]bool{}
			}
			limit.whole = limit.whole || need.FullObjects
			limit.everything[need.Namespace] = limit.everything[need.Namespace] || need.IncludeForeign
			out[need.Kind] = limit
		}
	}
	for _, limit := range out {
		if everywhere, all := limit.everything[""]; all {
			// What all namespaces show anyway needs no rule of its own.
			maps.DeleteFunc(limit.everything, func(namespace string, everything bool) bool {
				return namespace != "" && (everywhere || !everything)
			})
		}
	}
	return out
}

func ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{names.OperatorLabel: names.OperatorName})
}

// chain returns a transform that does what two of them do. Either may be nil.
func chain(first, then toolscache.TransformFunc) toolscache.TransformFunc {
	if first == nil {
		return then
	}
	if then == nil {
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

// identities shortens the metadata of foreign objects to identity and version. Their annotations may hold whole contents besides:
// `kubectl apply` copies a Secret into one.
func identities(in any) (any, error) {
	if head, ok := in.(*metav1.PartialObjectMetadata); ok && head.Labels[names.OperatorLabel] != names.OperatorName {
		shorten(head)
	}
	return in, nil
}

// StripMetadata is a transform of metadata that keeps what tells an object and its versions apart.
func StripMetadata(in any) (any, error) {
	if head, ok := in.(*metav1.PartialObjectMetadata); ok {
		shorten(head)
		head.ManagedFields = nil
	}
	return in, nil
}

func shorten(head *metav1.PartialObjectMetadata) {
	head.Labels, head.Annotations, head.OwnerReferences, head.Finalizers = nil, nil, nil, nil
}

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// informerFor makes informers that find our objects by their owners, and see only ours of the selected kinds. Such a kind is known by what metadata
// and unstructured objects carry.
func informerFor(selected map[schema.GroupVersionKind]bool) newInformer {
	return func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if selected[obj.GetObjectKind().GroupVersionKind()] {
			lw = limited(lw, ours().String())
		}
		if custom(obj) {
			lw = relisting(lw, clock.RealClock{})
		}
		maps.Copy(indexers, apply.OwnerIndexers())
		return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
	}
}

func limited(lw toolscache.ListerWatcher, selector string) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return inner.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return inner.WatchWithContext(ctx, options)
		},
	}, lw)
}
