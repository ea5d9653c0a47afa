package apply

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// digestOf identifies the state of the apply entry of fieldOwner, by a hash of its fields and the time of its last change; "" for no entry.
// An entry that Transform has shortened has the same digest.
func digestOf(entries []metav1.ManagedFieldsEntry, fieldOwner string) string {
	i := slices.IndexFunc(entries, isAppliedBy(fieldOwner))
	if i < 0 {
		return ""
	}
	return hashFields(entries[i].FieldsV1) + strconv.FormatInt(ptr.Deref(entries[i].Time, metav1.Time{}).Unix(), 10)
}

// isAppliedBy returns a predicate for the entry of a field owner for applies to the object itself. The API server keeps at most one.
func isAppliedBy(fieldOwner string) func(metav1.ManagedFieldsEntry) bool {
	return func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	}
}

// hashFields returns a hash of a set of fields as a JSON string, or the existing hash. It hashes sorted keys, because the API server varies
// their order.
func hashFields(fields *metav1.FieldsV1) string {
	if raw := fields.GetRawString(); raw == "" || raw[0] == '"' {
		return raw
	}
	return hashTree(decodeFields(fields))
}

func hashTree(tree fieldTree) string { return `"` + strconv.FormatUint(hashJSON(tree), 36) + `"` }

// Transform returns a cache transform. In managedFields it keeps only the apply entries of the field owners, each with a hash of its
// fields, and it drops the last-applied annotation of kubectl. Managed fields are the largest part of the metadata of most objects. Common
// strings are interned. Objects from such a cache must not be updated, only patched.
func Transform(fieldOwners ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, err := meta.Accessor(in)
		if err != nil {
			return in, nil // a tombstone, or no API object
		}
		var kept []metav1.ManagedFieldsEntry
		for _, entry := range object.GetManagedFields() {
			if !slices.ContainsFunc(fieldOwners, func(owner string) bool { return isAppliedBy(owner)(entry) }) {
				continue
			}
			entry.FieldsV1 = metav1.NewFieldsV1(hashFields(entry.FieldsV1))
			entry.Manager, entry.APIVersion, entry.FieldsType = intern(entry.Manager), intern(entry.APIVersion), intern(entry.FieldsType)
			kept = append(kept, entry)
		}
		object.SetManagedFields(kept)
		if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation) // a second copy of the object
			object.SetAnnotations(annotations)
		}
		internStrings(object)
		return in, nil
	}
}

// internStrings shares the strings that many objects have in common, such as labels and owner references: half of the metadata of a
// child.
func internStrings(object metav1.Object) {
	if labels := object.GetLabels(); len(labels) > 0 {
		shared := make(map[string]string, len(labels))
		for name, value := range labels {
			shared[intern(name)] = intern(value)
		}
		object.SetLabels(shared)
	}
	refs := object.GetOwnerReferences()
	for i, ref := range refs {
		refs[i].APIVersion, refs[i].Kind, refs[i].Name, refs[i].UID = intern(ref.APIVersion), intern(ref.Kind), intern(ref.Name), intern(ref.UID)
	}
	if len(refs) > 0 {
		object.SetOwnerReferences(refs)
	}
	object.SetNamespace(intern(object.GetNamespace()))
}

func intern[T comparable](value T) T { return unique.Make(value).Value() }

// OwnerIndex is the field index of the cache by owner, see OwnerIndexers and Options.Indexed. Without it each Prune iterates over all
// objects of a kind in the namespace, which is quadratic in the number of owners.
const OwnerIndex = "metadata.ownerReferences.uid"

// OwnerIndexers returns the indexers for the informers of the cache. Name and values have the format of controller-runtime.
func OwnerIndexers() toolscache.Indexers {
	return toolscache.Indexers{"field:" + OwnerIndex: func(in any) ([]string, error) {
		object, err := meta.Accessor(in)
		if err != nil || object.GetLabels()[names.OperatorLabel] != names.OperatorName {
			return nil, err
		}
		var values []string
		for _, ref := range object.GetOwnerReferences() {
			values = append(values, object.GetNamespace()+"/"+string(ref.UID))
		}
		return values, nil
	}}
}

// newForCache returns an empty object or list of a kind as the cache holds it: metadata, unless the kind is one of FullObjectKinds.
func newForCache[T runtime.Object](a *Applier, kind schema.GroupVersionKind, suffix string, metadata T) T {
	if slices.Contains(a.FullObjectKinds, kind) {
		kind.Kind += suffix
		typed, _ := a.Client.Scheme().New(kind) // nil for a kind that is not in the scheme
		if object, ok := typed.(T); ok {
			return object
		}
	}
	return metadata
}

// getCached returns an object as the cache holds it, typed or as metadata; nil when it does not exist. The result must not be modified.
func (a *Applier) getCached(ctx context.Context, k Key) (client.Object, error) {
	object := newForCache[client.Object](a, k.GroupVersionKind, "", objectmeta.New(k.GroupVersionKind))
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
	list := newForCache[client.ObjectList](a, kind, "List", objectmeta.NewList(kind))
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

// getLive reads an object from the API server.
func (a *Applier) getLive(ctx context.Context, k Key) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(k.GroupVersionKind)
	return live, a.Live.Get(ctx, k.NamespacedName, live)
}

// read returns the live object: Existing or, after a restart, the one from a snapshot, if the cache has the same version. Otherwise it
// reads the object from the API server.
func (a *Applier) read(ctx context.Context, o owner, c *child, cached client.Object) (*unstructured.Unstructured, error) {
	var known *unstructured.Unstructured
	_, attempted := a.records.get(o.GetUID(), c.key)
	if c.Existing != nil {
		known = &unstructured.Unstructured{}
		if err := a.Client.Scheme().Convert(c.Existing, known, nil); err != nil {
			return nil, fmt.Errorf("converting it: %w", err)
		}
	} else if cached != nil && c.key.GroupKind() != secretKind && a.predatesProcess(o) && !attempted {
		known = a.takeFromSnapshot(ctx, c.key)
	}
	if known != nil && cached != nil && known.GetUID() == cached.GetUID() && known.GetResourceVersion() == cached.GetResourceVersion() {
		return known, nil
	}
	return a.getLive(ctx, c.key)
}

// A snapshot is a list of the managed objects of a kind and namespace, as JSON by name. After a restart it replaces a read of each object
// that has the same version in the cache. Secrets are not listed, because their values must not be stored in memory.
const (
	// listThreshold is the number of objects from which a list is cheaper than reads.
	listThreshold = 8
	// pageSize limits the number of objects that are decoded together.
	pageSize = 500
	// snapshotLifetime is how long unused objects are stored. A start with thousands of owners takes minutes.
	snapshotLifetime = 10 * time.Minute
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// takeFromSnapshot returns an object from the snapshot of its kind and namespace, and removes it there; nil if there is none.
func (a *Applier) takeFromSnapshot(ctx context.Context, k Key) *unstructured.Unstructured {
	load := sync.OnceValue(func() *sync.Map { return a.loadSnapshot(ctx, k) })
	stored, _ := a.snapshots.LoadOrStore(Key{k.GroupVersionKind, types.NamespacedName{Namespace: k.Namespace}}, load)
	data, found := stored.(func() *sync.Map)().LoadAndDelete(k.Name)
	live := &unstructured.Unstructured{}
	if !found || live.UnmarshalJSON(data.([]byte)) != nil {
		return nil
	}
	return live
}

// loadSnapshot returns the snapshot of the kind and namespace of a child. It is empty if the cache has fewer than listThreshold such
// objects. Errors are ignored: the objects are then read one by one.
func (a *Applier) loadSnapshot(ctx context.Context, k Key) *sync.Map {
	objects, inNamespace := &sync.Map{}, client.InNamespace(k.Namespace)
	cached, err := a.listManaged(ctx, k.GroupVersionKind, inNamespace, client.Limit(listThreshold))
	if err != nil || len(cached) < listThreshold {
		return objects
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
				objects.Store(page.Items[i].GetName(), data)
			}
		}
	}
	time.AfterFunc(snapshotLifetime, objects.Clear)
	return objects
}

// trimForComparison removes the fields of a managed object that Apply ignores.
func (a *Applier) trimForComparison(object *unstructured.Unstructured) *unstructured.Unstructured {
	delete(object.Object, "status")
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		entries, _ := metadata["managedFields"].([]any)
		metadata["managedFields"] = slices.DeleteFunc(entries, func(e any) bool { return nested.String(e, "manager") != a.FieldOwner })
	}
	return object
}
