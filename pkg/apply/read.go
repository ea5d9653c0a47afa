package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// getCached returns an object as the cache holds it, typed or as metadata; nil when it does not exist. It must not be modified.
func (a *Applier) getCached(ctx context.Context, k key) (client.Object, error) {
	object := cached[client.Object](a, k.GroupVersionKind, "", newMetadata(k))
	err := a.Client.Get(ctx, k.NamespacedName, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it from the cache: %w", err)
	}
	return object, nil
}

// listManaged lists the objects of a kind with the labels of the component. They are part of the cache and must not be modified.
func (a *Applier) listManaged(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	list := cached[client.ObjectList](a, kind, "List", newMetadataList(kind))
	options = append(options, client.MatchingLabels(names.Labels(a.Component)), client.UnsafeDisableDeepCopy)
	if err := a.Client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
		return nil
	})
	return objects, err
}

// cached returns an empty object or list of a kind as the cache holds it: metadata, unless the kind is one of FullObjectKinds.
func cached[T runtime.Object](a *Applier, kind schema.GroupVersionKind, suffix string, metadata T) T {
	if a.fullObjectKinds.Has(kind) {
		kind.Kind += suffix
		if typed, err := a.Client.Scheme().New(kind); err == nil {
			if object, ok := typed.(T); ok {
				return object
			}
		}
	}
	return metadata
}

func newMetadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// newMetadata returns an object with nothing but its kind and name.
func newMetadata(k key) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(k.GroupVersionKind)
	object.SetNamespace(k.Namespace)
	object.SetName(k.Name)
	return object
}

// getLive reads an object from the API server.
func (a *Applier) getLive(ctx context.Context, k key) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(k.GroupVersionKind)
	return live, a.Live.Get(ctx, k.NamespacedName, live)
}

// read returns the live object: Existing or, after a restart, the one from a snapshot, if the cache has the same version. Otherwise it
// reads the object from the API server.
func (a *Applier) read(ctx context.Context, o owner, c *child, cached client.Object) (*unstructured.Unstructured, error) {
	var known *unstructured.Unstructured
	_, attempted := a.records.get(o.uid, c.key)
	if c.Existing != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Existing)
		if err != nil {
			return nil, fmt.Errorf("converting it: %w", err)
		}
		known = &unstructured.Unstructured{Object: content}
		known.SetGroupVersionKind(c.key.GroupVersionKind)
	} else if cached != nil && c.key.GroupKind() != secretKind && a.predatesProcess(o) && !attempted {
		known = a.takeListed(ctx, c.key)
	}
	if known != nil && cached != nil && known.GetUID() == cached.GetUID() && known.GetResourceVersion() == cached.GetResourceVersion() {
		return known, nil
	}
	return a.getLive(ctx, c.key)
}

// A snapshot is a list of the managed objects of a kind and namespace. After a restart it replaces a read of each object that has the same
// version in the cache. Secrets are not listed, because their values must not be stored in memory.
const (
	// listThreshold is the number of objects from which a list is cheaper than reads.
	listThreshold = 8
	// pageSize limits the number of objects that are decoded together.
	pageSize = 500
	// listLifetime is how long unused objects are stored. A start with thousands of owners takes minutes.
	listLifetime = 10 * time.Minute
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// snapshot holds the unused objects of one kind and namespace, as JSON by name.
type snapshot struct {
	load    sync.Once
	objects sync.Map
}

// takeListed returns an object from the snapshot of its kind and namespace, and removes it there; nil if there is none.
func (a *Applier) takeListed(ctx context.Context, k key) *unstructured.Unstructured {
	stored, _ := a.snapshots.LoadOrStore(unversionedKey{k.GroupKind(), types.NamespacedName{Namespace: k.Namespace}}, &snapshot{})
	s, ok := stored.(*snapshot)
	if !ok {
		return nil
	}
	s.load.Do(func() { a.loadSnapshot(ctx, s, k) })
	stored, _ = s.objects.LoadAndDelete(k.Name)
	live := &unstructured.Unstructured{}
	if data, ok := stored.([]byte); !ok || live.UnmarshalJSON(data) != nil {
		return nil
	}
	return live
}

// loadSnapshot lists the objects of the kind and namespace of a child, if the cache has listThreshold of them. Errors are ignored: the
// objects are then read one by one.
func (a *Applier) loadSnapshot(ctx context.Context, s *snapshot, k key) {
	inNamespace := client.InNamespace(k.Namespace)
	cached, err := a.listManaged(ctx, k.GroupVersionKind, inNamespace, client.Limit(listThreshold))
	if err != nil || len(cached) < listThreshold {
		return
	}
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	for more := true; more; more = page.GetContinue() != "" {
		next := client.Continue(page.GetContinue())
		if a.Live.List(ctx, page, inNamespace, client.MatchingLabels(names.Labels(a.Component)), client.Limit(pageSize), next) != nil {
			break
		}
		for i := range page.Items {
			if data, err := a.trimForComparison(&page.Items[i]).MarshalJSON(); err == nil {
				s.objects.Store(page.Items[i].GetName(), data)
			}
		}
	}
	time.AfterFunc(listLifetime, s.objects.Clear)
}

// trimForComparison removes the fields that Apply ignores in an object with the labels.
func (a *Applier) trimForComparison(object *unstructured.Unstructured) *unstructured.Unstructured {
	delete(object.Object, "status")
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		entries, _ := metadata["managedFields"].([]any)
		metadata["managedFields"] = slices.DeleteFunc(entries, func(e any) bool { return lookup(e, "manager") != a.FieldOwner })
	}
	return object
}
