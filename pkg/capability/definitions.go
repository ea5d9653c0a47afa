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

// definitions follows the names of CustomResourceDefinitions. Its informer is not one of the manager's cache, because nothing but
// names is of interest, a few hundred bytes where the whole objects take megabytes, and because it may be forbidden. A nil one
// knows nothing.
type crdWatcher struct {
	groups    map[string]bool
	informer  toolscache.SharedIndexInformer
	seen      sync.Map // names of definitions of the groups that there were
	forbidden atomic.Bool
}

// newDefinitions prepares the following of all definitions. Signal is called for every event about one of the groups.
func newCRDWatcher(client metadata.Interface, groups map[string]bool, log logr.Logger, signal func()) (*crdWatcher, error) {
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
			signal()
		}
	}
	relevant := func(obj any) {
		d.forbidden.Store(false)
		if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil && groups[schema.ParseGroupResource(key).Group] {
			d.seen.Store(key, true)
			signal()
		}
	}
	_, err := d.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: relevant, DeleteFunc: relevant, UpdateFunc: func(_, after any) { relevant(after) },
	})
	if err := errors.Join(err, d.informer.SetTransform(nameOnly), d.informer.SetWatchErrorHandlerWithContext(onError)); err != nil {
		return nil, fmt.Errorf("following definitions: %w", err)
	}
	return d, nil
}

// following reports whether events can be relied on.
func (d *crdWatcher) isSynced() bool {
	return d != nil && d.informer.HasSynced() && !d.forbidden.Load()
}

// gone reports that the definition of a resource was there and is not any more. Definitions are always named plural.group.
func (d *crdWatcher) isRemoved(resource schema.GroupResource) bool {
	if !d.isSynced() {
		return false
	}
	_, seen := d.seen.Load(resource.String())
	_, found, err := d.informer.GetStore().GetByKey(resource.String())
	return seen && !found && err == nil
}

// agree reports whether discovery lists every definition of our groups, as far as it can tell.
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
