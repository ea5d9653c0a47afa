package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

// readDiscovery returns the listed kinds, and the versions that are listed without their resources: these could not be read, or are not
// collected yet.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterface) (listed Set, unreadable sets.Set[schema.GroupVersion], err error) {
	groups, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return Set{}, nil, fmt.Errorf("reading discovery: %w", err)
	}
	listed, unreadable = NewSet(), sets.New[schema.GroupVersion]()
	for _, group := range groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if !apierrors.IsNotFound(failed[gv]) { // NotFound: removed between two requests
				unreadable.Insert(gv)
			}
		}
	}
	for _, list := range resources {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) // always valid
		unreadable.Delete(gv)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // the kind of a subresource is that of its response
				listed.Insert(gv.WithKind(r.Kind))
			}
		}
	}
	return listed, unreadable, nil
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crdWatcher watches the names of CustomResourceDefinitions. It has its own metadata informer, because cached names take a few hundred bytes
// instead of megabytes, and because the permission may be missing.
type crdWatcher struct {
	toolscache.SharedIndexInformer
	exist sync.Map // whether each observed definition exists, by name
}

// watchCRDs returns a watcher that calls notify for each event of the groups of the kinds.
func watchCRDs(o Options, notify func()) (*crdWatcher, error) {
	w := &crdWatcher{SharedIndexInformer: metadatainformer.NewFilteredMetadataInformer(o.Metadata, customResourceDefinitions, "", 0, toolscache.Indexers{}, nil).Informer()}
	onEvent := func(obj any, exists bool) {
		name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		group := schema.ParseGroupResource(name).Group
		if err == nil && slices.ContainsFunc(o.Kinds, func(k schema.GroupVersionKind) bool { return k.Group == group }) {
			w.exist.Store(name, exists)
			notify()
		}
	}
	_, err := w.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { onEvent(obj, true) },
		UpdateFunc: func(_, obj any) { onEvent(obj, true) },
		DeleteFunc: func(obj any) { onEvent(obj, false) },
	})
	if err := errors.Join(err, w.SetTransform(nameOnly)); err != nil {
		return nil, fmt.Errorf("watching definitions: %w", err)
	}
	return w, nil
}

// exists returns whether the definition of a kind exists, and whether it was ever observed. Definitions are always named plural.group.
func (w *crdWatcher) exists(k schema.GroupVersionKind) (exists, observed bool) {
	if w == nil {
		return false, false
	}
	resource, _ := meta.UnsafeGuessKindToResource(k) // correct for all our kinds
	value, observed := w.exist.Load(resource.GroupResource().String())
	return value == true, observed
}

// nameOnly keeps only the fields that the informer needs.
func nameOnly(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil // a tombstone contains an object that was transformed before
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: obj.Name, ResourceVersion: obj.ResourceVersion}}, nil
}
