package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Prune deletes the objects of the given kinds that bear a reference to owner and our labels and are not among the
// desired ones. Of an object that has other owners only the reference goes. Objects without a reference are never
// touched, so what is Unowned stays. The objects come from the cache, so a call that finds nothing costs no request;
// a kind that is not served is passed over.
//
// Legacy, when not nil, selects the objects of an older operator, which lack our labels and are thus invisible to the
// cache. They are listed from the API server once for each owner in the life of the process.
func (a *Applier) Prune(ctx context.Context, owner client.Object, desired Desired,
	kinds []schema.GroupVersionKind, legacy client.ListOption,
) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	keep, err := places(desired)
	if err != nil {
		return err
	}
	if a.memory.hasSearched(o.uid) {
		legacy = nil
	}
	var errs []error
	for _, kind := range kinds {
		err := a.pruneKind(ctx, o, keep, kind, legacy)
		if err != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("pruning %s: %w", kind.Kind, err))
		}
	}
	err = errors.Join(errs...)
	if legacy != nil && err == nil {
		a.memory.noteSearched(o.uid)
	}
	return err
}

func (a *Applier) pruneKind(ctx context.Context, o owner, keep map[place]bool,
	kind schema.GroupVersionKind, legacy client.ListOption,
) error {
	where, err := a.namespace(o, kind)
	if err != nil || where == nil {
		return err
	}
	found, err := a.labelledObjects(ctx, kind, where)
	if err != nil {
		return err
	}
	if legacy != nil {
		old, err := a.legacyObjects(ctx, kind, where, legacy)
		if err != nil {
			return err
		}
		found = append(found, old...)
	}
	var errs []error
	for _, object := range found {
		name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		if keep[place{kind.GroupKind(), name}] || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := a.remove(ctx, o, key{kind, name}, object); err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// legacyObjects lists the objects of older operators from the API server. Those with our labels are in the cache.
func (a *Applier) legacyObjects(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]metav1.Object, error) {
	list := metadataList(kind)
	if err := a.Live.List(ctx, list, options...); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("listing the objects of older operators: %w", err)
	}
	var objects []metav1.Object
	for i := range list.Items {
		if !a.labelled(&list.Items[i]) {
			objects = append(objects, &list.Items[i])
		}
	}
	return objects, nil
}

// namespace returns where objects of a kind with a reference to the owner can be: beside a namespaced owner, and
// anywhere for one of cluster scope. Nil means nowhere.
func (a *Applier) namespace(o owner, kind schema.GroupVersionKind) (client.ListOption, error) {
	if o.Namespace == "" {
		return client.InNamespace(""), nil
	}
	example := &metav1.PartialObjectMetadata{}
	example.SetGroupVersionKind(kind)
	namespaced, err := a.Client.IsObjectNamespaced(example)
	if err != nil || !namespaced {
		return nil, err
	}
	return client.InNamespace(o.Namespace), nil
}

// labelledObjects lists the objects of a kind that bear our labels, from the cache and as part of it: they must not
// be changed.
func (a *Applier) labelledObjects(ctx context.Context, kind schema.GroupVersionKind, where client.ListOption) (
	[]metav1.Object, error,
) {
	var list client.ObjectList = metadataList(kind)
	if a.whole.Has(kind) {
		typed, err := a.Client.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("making an empty list: %w", err)
		}
		whole, ok := typed.(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list of API objects", typed)
		}
		list = whole
	}
	labels := client.MatchingLabels(names.Labels(a.Component))
	if err := a.Client.List(ctx, list, where, labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	var objects []metav1.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		objects = append(objects, object)
		return err
	})
	return objects, err
}

func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// remove takes one object away from the owner. What the owner controls is deleted; what it shares is checked once
// more, because the cache may not know all the others yet.
func (a *Applier) remove(ctx context.Context, o owner, k key, object metav1.Object) error {
	i := slices.IndexFunc(object.GetOwnerReferences(), o.is)
	switch {
	case i < 0:
		return nil
	case metav1.IsControlledBy(object, &metav1.ObjectMeta{UID: o.uid}):
		return a.delete(ctx, o, k, object.GetUID(), metav1.DeletePropagationBackground)
	default:
		return a.release(ctx, o, k, object.GetUID())
	}
}

// release drops the reference of the owner from a shared object, and the object when that was the last one.
func (a *Applier) release(ctx context.Context, o owner, k key, uid types.UID) error {
	defer a.shared.lock(k)()
	live := metadata(k)
	if err := a.Live.Get(ctx, k.NamespacedName, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	i := slices.IndexFunc(live.OwnerReferences, o.is)
	switch {
	case i < 0 || live.UID != uid:
		return nil
	case len(live.OwnerReferences) == 1:
		return a.delete(ctx, o, k, uid, metav1.DeletePropagationBackground)
	}
	reference := fmt.Sprintf("/metadata/ownerReferences/%d", i)
	err := a.patch(ctx, verbRelease, k, live, []operation{
		{Operation: "test", Path: reference + "/uid", Value: o.uid},
		{Operation: "remove", Path: reference},
	})
	a.memory.drop(o.uid, k)
	return client.IgnoreNotFound(err)
}

// delete removes exactly the object with the given uid.
func (a *Applier) delete(ctx context.Context, o owner, k key, uid types.UID, policy metav1.DeletionPropagation) error {
	err := a.deleteWith(ctx, k, uid, client.PropagationPolicy(policy))
	a.memory.drop(o.uid, k)
	return client.IgnoreNotFound(err)
}

// metadata returns an object of which only the name is known.
func metadata(k key) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(k.GroupVersionKind)
	object.SetNamespace(k.Namespace)
	object.SetName(k.Name)
	return object
}

// Remove deletes one object of which the caller knows that it is ours to delete: exactly the one with the uid that the given
// object bears, and in the background what it owns. One that is gone or going is fine; a conflict says that another has its name
// now. forOwner is the uid of the object that it was made for, or empty.
func (a *Applier) Remove(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.removeBy(ctx, forOwner, object, metav1.DeletePropagationBackground)
}

// Discard is Remove for an object that is about to be recreated, such as a Deployment whose selector has to change: it is
// there until all that it owns is gone, so that old and new pods never meet.
func (a *Applier) Discard(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.removeBy(ctx, forOwner, object, metav1.DeletePropagationForeground)
}

func (a *Applier) removeBy(ctx context.Context, forOwner types.UID, object client.Object, policy metav1.DeletionPropagation) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	k := key{NamespacedName: client.ObjectKeyFromObject(object)}
	var err error
	if k.GroupVersionKind, err = apiutil.GVKForObject(object, a.Client.Scheme()); err == nil {
		err = a.delete(ctx, owner{uid: forOwner}, k, object.GetUID(), policy)
	}
	return k.failed(err)
}

// RemoveLabelled removes the objects of a kind that bear the labels of the component and the given ones, but for those that are kept.
// They come from the cache, wherever they are. A kind that is not served has none.
func (a *Applier) RemoveLabelled(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, labels map[string]string, keep func(client.Object) bool) error {
	list := metadataList(kind)
	if err := a.Client.List(ctx, list, client.MatchingLabels(names.Labels(a.Component)), client.MatchingLabels(labels)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		if object := &list.Items[i]; !keep(object) {
			object.SetGroupVersionKind(kind)
			errs = append(errs, a.Remove(ctx, forOwner, object))
		}
	}
	return errors.Join(errs...)
}

// RemoveNamed removes the object of a name, as the API server has it, if ours returns true for it. One that is not there is fine.
func (a *Applier) RemoveNamed(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, name types.NamespacedName,
	ours func(*metav1.PartialObjectMetadata) (bool, error),
) error {
	live := metadata(key{kind, name})
	err := a.Live.Get(ctx, name, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if remove, err := ours(live); err != nil || !remove {
		return err
	}
	return a.Remove(ctx, forOwner, live)
}

// ForgetNamespace drops all that is remembered about objects in a namespace that is gone, or in which nothing is wanted.
func (a *Applier) ForgetNamespace(namespace string) {
	a.memory.forgetNamespace(namespace)
}
