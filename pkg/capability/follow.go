package capability

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	watchapi "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/go-logr/logr"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// feed follows the names of one cluster-scoped resource. It is an informer of its own and not one of the manager's
// cache, because nothing but the names of some groups is of interest, a few hundred bytes where the whole objects
// take megabytes, and because it must be allowed to be forbidden.
type feed struct {
	resource  schema.GroupVersionResource
	informer  toolscache.SharedIndexInformer
	forbidden atomic.Bool
}

// newFeed prepares a feed whose signal is called for every event about one of the groups. It fails only on wrong use
// of the informer.
func newFeed(client metadata.Interface, resource schema.GroupVersionResource,
	groups map[string]bool, log logr.Logger, signal func()) (*feed, error) {
	f := &feed{resource: resource}
	f.informer = toolscache.NewSharedIndexInformer(f.listWatch(client.Resource(resource), client),
		&metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	if err := f.informer.SetTransform(nameOnly); err != nil {
		return nil, fmt.Errorf("setting the transform of %s: %w", resource.Resource, err)
	}
	if err := f.informer.SetWatchErrorHandlerWithContext(f.onError(log, signal)); err != nil {
		return nil, fmt.Errorf("setting the error handler of %s: %w", resource.Resource, err)
	}
	relevant := func(obj any) {
		if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil && groups[groupOf(key)] {
			signal()
		}
	}
	_, err := f.informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		// What existed before is compared with the first reading of discovery once, see Watcher.compare.
		AddFunc: func(obj any, initial bool) {
			if !initial {
				relevant(obj)
			}
		},
		DeleteFunc: relevant,
		UpdateFunc: func(_, after any) { relevant(after) },
	})
	if err != nil {
		return nil, fmt.Errorf("listening to %s: %w", resource.Resource, err)
	}
	return f, nil
}

// listWatch lists and watches, and notes whether that is allowed.
func (f *feed) listWatch(client metadata.ResourceInterface, semantics any) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, options)
			f.forbidden.Store(isDenied(err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watchapi.Interface, error) {
			events, err := client.Watch(ctx, options)
			f.forbidden.Store(isDenied(err))
			return events, err
		},
	}, semantics)
}

func isDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// onError says once that following is not allowed; the informer goes on trying, at most every 30 s, and following
// resumes when the permission comes.
func (f *feed) onError(log logr.Logger, signal func()) toolscache.WatchErrorHandlerWithContext {
	var once sync.Once
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !isDenied(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		once.Do(func() {
			log.Info("May not list and watch this resource; polling discovery instead, which notices changes later",
				"resource", f.resource.GroupResource().String(), "period", pollPeriod, "cause", err.Error())
			signal()
		})
	}
}

// following reports whether events can be relied on.
func (f *feed) following() bool { return f.informer.HasSynced() && !f.forbidden.Load() }

// names returns the current names that belong to the groups.
func (f *feed) names(groups map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, name := range f.informer.GetStore().ListKeys() {
		if groups[groupOf(name)] {
			out[name] = true
		}
	}
	return out
}

// nameOnly keeps what the informer itself needs: the name, and the resource version by which it sees changes.
func nameOnly(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil // a tombstone carries an object that was transformed before
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: obj.Name, ResourceVersion: obj.ResourceVersion,
	}}, nil
}

// groupOf gives the API group that an object announces: CustomResourceDefinitions are always named plural.group,
// APIServices version.group.
func groupOf(name string) string {
	_, group, _ := strings.Cut(name, ".")
	return group
}

// has reports whether the object exists.
func (f *feed) has(name string) bool {
	_, found, err := f.informer.GetStore().GetByKey(name)
	return found && err == nil
}

// listed reports whether discovery lists what the name announces, or that it cannot tell.
func (f *feed) listed(answer served, name string) (listed, uncertain bool) {
	first, group, _ := strings.Cut(name, ".")
	if f.resource == definitions {
		return answer.hasResource(group, first)
	}
	return answer.hasVersion(schema.GroupVersion{Group: group, Version: first}), false
}
