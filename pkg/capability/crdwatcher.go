package capability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crdWatcher watches the names of CustomResourceDefinitions. It has its own metadata informer, because cached names take a few hundred bytes
// instead of megabytes, and because the permission may be missing. A nil crdWatcher is never synced.
type crdWatcher struct {
	groups    map[string]bool
	informer  toolscache.SharedIndexInformer
	seen      sync.Map // names of all observed definitions of the groups
	forbidden atomic.Bool
}

// newCRDWatcher returns a watcher of all definitions, which calls notify for every event of one of the groups.
func newCRDWatcher(client metadata.Interface, groups map[string]bool, log logr.Logger, notify func()) (*crdWatcher, error) {
	d := &crdWatcher{groups: groups}
	d.informer = metadatainformer.NewFilteredMetadataInformer(client, customResourceDefinitions, "", 0, toolscache.Indexers{}, nil).Informer()
	onError := func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		if d.forbidden.CompareAndSwap(false, true) {
			log.Info("May not list and watch CustomResourceDefinitions; polling discovery instead, which notices changes later",
				"period", pollPeriod, "cause", err.Error())
			notify()
		}
	}
	onEvent := func(obj any) {
		d.forbidden.Store(false)
		if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil && groups[schema.ParseGroupResource(key).Group] {
			d.seen.Store(key, true)
			notify()
		}
	}
	_, err := d.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: onEvent, DeleteFunc: onEvent, UpdateFunc: func(_, after any) { onEvent(after) },
	})
	if err := errors.Join(err, d.informer.SetTransform(nameOnly), d.informer.SetWatchErrorHandlerWithContext(onError)); err != nil {
		return nil, fmt.Errorf("following definitions: %w", err)
	}
	return d, nil
}

// isSynced reports whether the informer is synced and receives events.
func (d *crdWatcher) isSynced() bool {
	return d != nil && d.informer.HasSynced() && !d.forbidden.Load()
}

// isRemoved reports whether the definition of a resource was observed and deleted. Definitions are always named plural.group.
func (d *crdWatcher) isRemoved(resource schema.GroupResource) bool {
	if !d.isSynced() {
		return false
	}
	_, seen := d.seen.Load(resource.String())
	_, found, err := d.informer.GetStore().GetByKey(resource.String())
	return seen && !found && err == nil
}

// agreesWith reports whether discovery lists every definition of the groups, or failed to read their version.
func (d *crdWatcher) agreesWith(answer discoveryResult) bool {
	if !d.isSynced() {
		return true
	}
	for _, name := range d.informer.GetStore().ListKeys() {
		if resource := schema.ParseGroupResource(name); d.groups[resource.Group] && !answer.mayServe(resource) {
			return false
		}
	}
	return true
}

// nameOnly keeps only the fields that the informer needs.
func nameOnly(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil // a tombstone contains an object that was transformed before
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: obj.Name, ResourceVersion: obj.ResourceVersion,
	}}, nil
}
