package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Prune deletes the objects of the given kinds that have the labels of the component and a reference to owner but are not desired. An
// object with further owners loses only the reference. Objects without a reference are kept, and so are Unowned ones. The
// objects are listed from the cache, so a call without a deletion sends no request. Kinds that are not served are skipped.
//
// legacy, if not nil, selects the objects of a legacy operator. They lack the labels, so the cache does not hold them. They are
// listed from the API server once per owner and process.
func (a *Applier) Prune(ctx context.Context, owner client.Object, desired Desired,
	kinds []schema.GroupVersionKind, legacy client.ListOption,
) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	keep := make(map[unversionedKey]bool, len(desired))
	for _, object := range desired {
		k, err := keyOf(object.Config)
		if err != nil {
			return err
		}
		keep[unversionedKey{k.GroupKind(), k.NamespacedName}] = true
	}
	if _, listed := a.records.get(o.uid, legacyListedKey); listed {
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
		a.records.Store(recordKey{o.uid, legacyListedKey}, record{})
	}
	return err
}

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

func (a *Applier) pruneKind(ctx context.Context, o owner, keep map[unversionedKey]bool,
	kind schema.GroupVersionKind, legacy client.ListOption,
) error {
	inNamespace := client.InNamespace(o.Namespace) // all namespaces for a cluster-scoped owner
	options := []client.ListOption{inNamespace}
	if a.Indexed && o.Namespace != "" {
		options = append(options, client.MatchingFields{OwnerIndex: string(o.uid)})
	}
	found, err := a.listManaged(ctx, kind, options...)
	if err != nil {
		return err
	}
	if legacy != nil {
		list := newMetadataList(kind)
		if err := a.Live.List(ctx, list, inNamespace, legacy); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("listing the objects of older operators: %w", err)
		}
		for i := range list.Items {
			if !a.hasLabels(&list.Items[i]) {
				found = append(found, &list.Items[i])
			}
		}
	}
	var errs []error
	for _, object := range found {
		name := client.ObjectKeyFromObject(object)
		if keep[unversionedKey{kind.GroupKind(), name}] || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := a.pruneObject(ctx, o, key{kind, name}, object); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// pruneObject deletes an object that the owner controls. From a shared object it removes the reference of the owner, unless no other
// owner is left. A shared object is read first, because the cache may lack a new reference.
func (a *Applier) pruneObject(ctx context.Context, o owner, k key, object metav1.Object) error {
	if metav1.IsControlledBy(object, &metav1.ObjectMeta{UID: o.uid}) {
		return a.deleteByUID(ctx, o.uid, k, object.GetUID(), background)
	}
	if !slices.ContainsFunc(object.GetOwnerReferences(), o.matches) {
		return nil
	}
	a.sharedMu.Lock()
	defer a.sharedMu.Unlock()
	live := newMetadata(k)
	if err := a.Live.Get(ctx, k.NamespacedName, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	released := live.DeepCopy()
	released.OwnerReferences = slices.DeleteFunc(released.OwnerReferences, o.matches)
	switch {
	case len(released.OwnerReferences) == len(live.OwnerReferences) || live.UID != object.GetUID():
		return nil
	case len(released.OwnerReferences) == 0:
		return a.deleteByUID(ctx, o.uid, k, live.UID, background)
	}
	err := a.patch(ctx, verbRelease, k, live, released)
	a.records.Delete(recordKey{o.uid, k})
	return client.IgnoreNotFound(err)
}

const background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// deleteByUID deletes an object with the given uid and its record. NotFound is no error.
func (a *Applier) deleteByUID(ctx context.Context, forOwner types.UID, k key, uid types.UID, policy client.PropagationPolicy) error {
	err := a.delete(ctx, k, uid, policy)
	a.records.Delete(recordKey{forOwner, k})
	return client.IgnoreNotFound(err)
}

// DeleteOwned deletes an object with the uid of the given object, and its dependents in the background. The caller must ensure that this
// component may delete it. An object that is terminating or not found is no error; another uid is a conflict. forOwner is
// the uid of its owner, or empty.
func (a *Applier) DeleteOwned(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.deleteOwned(ctx, forOwner, object, background)
}

// DeleteForeground is DeleteOwned with foreground deletion, for an object that will be recreated, such as a Deployment with another
// selector. The object exists until its dependents are deleted, so old and new pods never run together.
func (a *Applier) DeleteForeground(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.deleteOwned(ctx, forOwner, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
}

func (a *Applier) deleteOwned(ctx context.Context, forOwner types.UID, object client.Object, policy client.PropagationPolicy) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	kind, err := apiutil.GVKForObject(object, a.Client.Scheme())
	k := key{kind, client.ObjectKeyFromObject(object)}
	if err == nil {
		err = a.deleteByUID(ctx, forOwner, k, object.GetUID(), policy)
	}
	return k.wrapError("deleting", err)
}

// DeleteByLabels deletes the objects of a kind in all namespaces that have the labels of the component and the given ones, unless keep
// returns true. They are listed from the cache. Kinds that are not served are skipped.
func (a *Applier) DeleteByLabels(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, labels map[string]string, keep func(client.Object) bool) error {
	objects, err := a.listManaged(ctx, kind, client.MatchingLabels(labels))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("looking for %s objects: %w", kind.Kind, err)
	}
	var errs []error
	for _, object := range objects {
		if !keep(object) {
			errs = append(errs, a.DeleteOwned(ctx, forOwner, object))
		}
	}
	return errors.Join(errs...)
}

// DeleteIf reads an object from the API server and deletes it if matches returns true. NotFound is no error.
func (a *Applier) DeleteIf(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, name types.NamespacedName,
	matches func(*metav1.PartialObjectMetadata) (bool, error),
) error {
	live := newMetadata(key{kind, name})
	err := a.Live.Get(ctx, name, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if remove, err := matches(live); err != nil || !remove {
		return err
	}
	return a.DeleteOwned(ctx, forOwner, live)
}
