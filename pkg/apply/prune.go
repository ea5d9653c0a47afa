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
	toolscache "k8s.io/client-go/tools/cache"
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
	if a.memory.tried(o.uid, searched) {
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
		a.memory.remember(o.uid, searched, record{})
	}
	return err
}

// OwnerIndex is the field by which a cache finds the objects of an owner, see OwnerIndexers and Options.Indexed. Without it each Prune looks
// at all objects of a kind in the namespace, so that many owners there would cost the square of their number.
const OwnerIndex = "metadata.ownerReferences.uid"

// OwnerIndexers are for the informers of such a cache. The form of name and values is that which controller-runtime gives to fields.
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

func (a *Applier) pruneKind(ctx context.Context, o owner, keep map[place]bool,
	kind schema.GroupVersionKind, legacy client.ListOption,
) error {
	where, err := a.namespace(o, kind)
	if err != nil || where == nil {
		return err
	}
	options := []client.ListOption{where}
	if a.Indexed && o.Namespace != "" {
		options = append(options, client.MatchingFields{OwnerIndex: string(o.uid)})
	}
	found, err := a.labelledObjects(ctx, kind, options...)
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
		name := client.ObjectKeyFromObject(object)
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
func (a *Applier) legacyObjects(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	list := metadataList(kind)
	if err := a.Live.List(ctx, list, options...); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("listing the objects of older operators: %w", err)
	}
	var objects []client.Object
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
	namespaced, err := a.Client.IsObjectNamespaced(metadata(key{GroupVersionKind: kind}))
	if err != nil || !namespaced {
		return nil, err
	}
	return client.InNamespace(o.Namespace), nil
}

// labelledObjects lists the objects of a kind that bear our labels, from the cache and as part of it: they must not
// be changed.
func (a *Applier) labelledObjects(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	var list client.ObjectList = metadataList(kind)
	if a.whole.Has(kind) {
		whole, err := newAs[client.ObjectList](a.Client.Scheme(), kind.GroupVersion().WithKind(kind.Kind+"List"))
		if err != nil {
			return nil, err
		}
		list = whole
	}
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
	a.shared.Lock()
	defer a.shared.Unlock()
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
	err := a.deleteWith(ctx, k, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &policy})
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

// DeleteOwned deletes one object of which the caller knows that it is ours to delete: exactly the one with the uid that the given
// object bears, and in the background what it owns. One that is gone or going is fine; a conflict says that another has its name
// now. forOwner is the uid of the object that it was made for, or empty.
func (a *Applier) DeleteOwned(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.removeBy(ctx, forOwner, object, metav1.DeletePropagationBackground)
}

// DeleteForeground is Remove for an object that is about to be recreated, such as a Deployment whose selector has to change: it is
// there until all that it owns is gone, so that old and new pods never meet.
func (a *Applier) DeleteForeground(ctx context.Context, forOwner types.UID, object client.Object) error {
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

// DeleteByLabels removes the objects of a kind that bear the labels of the component and the given ones, but for those that are kept.
// They come from the cache, wherever they are. A kind that is not served has none.
func (a *Applier) DeleteByLabels(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, labels map[string]string, keep func(client.Object) bool) error {
	objects, err := a.labelledObjects(ctx, kind, client.MatchingLabels(labels))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("looking for %s objects: %w", kind.Kind, err)
	}
	var errs []error
	for _, object := range objects {
		if object.GetDeletionTimestamp() == nil && !keep(object) {
			k := key{kind, client.ObjectKeyFromObject(object)}
			errs = append(errs, k.failed(a.delete(ctx, owner{uid: forOwner}, k, object.GetUID(), metav1.DeletePropagationBackground)))
		}
	}
	return errors.Join(errs...)
}

// DeleteIf removes the object of a name, as the API server has it, if ours returns true for it. One that is not there is fine.
func (a *Applier) DeleteIf(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, name types.NamespacedName,
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
	return a.DeleteOwned(ctx, forOwner, live)
}

// ForgetNamespace drops all that is remembered about objects in a namespace that is gone, or in which nothing is wanted.
func (a *Applier) ForgetNamespace(namespace string) {
	a.memory.forgetNamespace(namespace)
}
