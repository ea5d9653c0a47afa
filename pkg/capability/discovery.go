package capability

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/caches"
)

// anyVersion represents all versions of a kind in the result of readDiscovery.
const anyVersion = ""

// readDiscovery returns the listed kinds, each also with anyVersion, and the versions that could not be read: the server of an aggregated API
// may be unavailable.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterface) (listed Set, unreadable sets.Set[schema.GroupVersion], err error) {
	_, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return Set{}, nil, fmt.Errorf("reading discovery: %w", err)
	}
	listed = NewSet()
	for _, list := range resources {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) // always valid
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // the kind of a subresource is that of its response
				listed.Insert(gv.WithKind(r.Kind), schema.GroupKind{Group: gv.Group, Kind: r.Kind}.WithVersion(anyVersion))
			}
		}
	}
	maps.DeleteFunc(failed, func(_ schema.GroupVersion, err error) bool { return apierrors.IsNotFound(err) }) // removed between two requests
	return listed, sets.KeySet(failed), nil
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// newCRDInformer returns an informer that calls onEvent with the name of each CustomResourceDefinition and whether it exists. It is separate
// from the cache of the manager, because it stores no labels or annotations, and because the permission may be missing.
func newCRDInformer(client metadata.Interface, onEvent func(name string, exists bool)) toolscache.SharedIndexInformer {
	informer := metadatainformer.NewFilteredMetadataInformer(client, customResourceDefinitions, "", 0, toolscache.Indexers{}, nil).Informer()
	_ = informer.SetTransform(caches.StripMetadata) // fails only if the informer has started
	notify := func(obj any, exists bool) {
		name, _ := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj) // fails only for objects without metadata
		onEvent(name, exists)
	}
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{ // fails only if the informer has stopped
		AddFunc:    func(obj any) { notify(obj, true) },
		UpdateFunc: func(_, obj any) { notify(obj, true) },
		DeleteFunc: func(obj any) { notify(obj, false) },
	})
	return informer
}
