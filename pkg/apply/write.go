package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// Create creates an object that is never updated, such as a Job, unless skipsCreate returns true. It sets the labels and the owner
// reference that Apply would set. An existing object with both is no error; any other is a *ForeignError, wrapped in an *Error.
func (a *Applier) Create(ctx context.Context, owner client.Object, object Object) error {
	o := newOwner(owner, a.Client.Scheme())
	c, err := newChild(o, object)
	if err == nil {
		err = a.create(ctx, o, c)
	}
	return c.key.wrapError("", err)
}

func (a *Applier) create(ctx context.Context, o owner, c *child) error {
	if skip, err := a.skipsCreate(ctx, o, c, false); err != nil || skip {
		return err
	}
	err := a.CreateAsIs(ctx, a.render(o, c))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := a.getLive(ctx, c.key)
	if err != nil {
		return err
	}
	if !hasExpectedReference(live, o, c.Ownership) || !HasComponentLabels(live, a.Component) {
		return newForeignError(c.key, live)
	}
	return nil
}

// CreateAsIs creates an object, such as one from a template of a user, without adding labels or owner references. Use it only for objects
// that are never applied. The response is stored in object. Errors are those of the API server.
func (a *Applier) CreateAsIs(ctx context.Context, object *unstructured.Unstructured) error {
	return a.send(ctx, "create", object.GetKind(), created, func() error { return a.Client.Create(ctx, object, client.FieldOwner(a.FieldOwner)) })
}

// PatchExisting changes an existing object, such as a PersistentVolumeClaim, with a merge patch of the changes that mutate makes.
// live must be the caller's own copy; the response is stored in it. A concurrent write is a conflict error. The patch is skipped if nothing
// changed, if the object is terminating, or if it would get a reference to a terminating owner. Errors are of type *Error.
func (a *Applier) PatchExisting(ctx context.Context, live client.Object, mutate func()) error {
	k, original := a.keyOf(live), live.DeepCopyObject().(client.Object)
	mutate()
	if live.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(original, live) {
		a.countSkipped(k.Kind)
		return nil
	}
	if skip, err := a.addsTerminatingOwner(ctx, original, live); err != nil || skip {
		return k.wrapError("", err)
	}
	return k.wrapError("", a.patch(ctx, "patch", k, original, live))
}

// patch sends the changes of an object as a merge patch and stores the response in changed. A concurrent write is a conflict error.
func (a *Applier) patch(ctx context.Context, verb string, k Key, original, changed client.Object) error {
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	return a.send(ctx, verb, k.Kind, updated, func() error { return a.Client.Patch(ctx, changed, patch, client.FieldOwner(a.FieldOwner)) })
}

// Delete deletes the object with the given uid, and its dependents in the background unless an option has another policy. Errors are
// unwrapped errors of the API server: NotFound if the object does not exist, Conflict if it has another uid.
func (a *Applier) Delete(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName, uid types.UID, options ...client.DeleteOption) error {
	object := objectmeta.New(kind)
	object.Namespace, object.Name = name.Namespace, name.Name
	options = append([]client.DeleteOption{client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)}, options...)
	return a.send(ctx, "delete", kind.Kind, deleted, func() error { return a.Client.Delete(ctx, object, options...) })
}

// deleteRecorded deletes an object with the given uid, and its record. NotFound is no error.
func (a *Applier) deleteRecorded(ctx context.Context, forOwner types.UID, k Key, uid types.UID, options ...client.DeleteOption) error {
	err := a.Delete(ctx, k.GroupVersionKind, k.NamespacedName, uid, options...)
	a.records.Delete(recordKey{forOwner, k})
	return client.IgnoreNotFound(err)
}

// DeleteOwned deletes an object with the uid of the given object, and its dependents in the background unless an option has another
// policy. The caller must ensure that this component may delete it. An object that is terminating or not found is no error; another uid is
// a conflict. forOwner is the uid of its owner, or empty.
func (a *Applier) DeleteOwned(ctx context.Context, forOwner types.UID, object client.Object, options ...client.DeleteOption) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	k := a.keyOf(object)
	return k.wrapError("deleting", a.deleteRecorded(ctx, forOwner, k, object.GetUID(), options...))
}

// Foreground is an option for an object that will be recreated, such as a Deployment with another selector. The object exists until its
// dependents are deleted, so old and new pods never run together.
const Foreground = client.PropagationPolicy(metav1.DeletePropagationForeground)

// DeleteByLabels deletes the objects of a kind that have the labels of the component and the given ones, in all namespaces, unless keep
// returns true. The objects are listed from the cache. A kind that is not served is skipped.
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

// DeleteIf reads an object from the API server and deletes it if matches returns true. A missing object or API is no error.
func (a *Applier) DeleteIf(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, name types.NamespacedName,
	matches func(*metav1.PartialObjectMetadata) (bool, error),
) error {
	live := objectmeta.New(kind)
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

// Prune deletes the objects of the given kinds that have the labels of the component and a reference to owner but are not desired. An
// object with further owners is kept unless owner is its controller. Unowned objects are kept. The objects are listed from the cache, so a
// call without legacy and without a deletion sends no request. Kinds that are not served are skipped.
//
// legacy, if not nil, selects the objects of a legacy operator. They lack the labels, so the cache does not hold them. They are listed from
// the API server once per owner, kind and process, unless the owner was created after this process started and has no conditions.
func (a *Applier) Prune(ctx context.Context, owner client.Object, desired Desired,
	kinds []schema.GroupVersionKind, legacy client.ListOption,
) error {
	o := newOwner(owner, a.Client.Scheme())
	keep := make(map[Key]bool, len(desired))
	for _, object := range desired {
		k := object.Key()
		if err := k.validate(); err != nil {
			return err
		}
		keep[k.unversioned()] = true
	}
	status, ok := owner.(interface{ ConditionsRef() *[]metav1.Condition })
	if ok && legacy != nil && len(*status.ConditionsRef()) == 0 && !a.predatesProcess(o) {
		a.records.Store(recordKey{o.GetUID(), legacyListedKey}, record{})
	}
	if _, listed := a.records.get(o.GetUID(), legacyListedKey); listed {
		legacy = nil
	}
	var errs []error
	for _, kind := range kinds {
		err := a.pruneKind(ctx, o, keep, kind, legacy)
		if err != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("pruning %s: %w", kind.Kind, err))
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) pruneKind(ctx context.Context, o owner, keep map[Key]bool,
	kind schema.GroupVersionKind, legacy client.ListOption,
) error {
	inNamespace := client.InNamespace(o.GetNamespace()) // all namespaces for a cluster-scoped owner
	options := []client.ListOption{inNamespace}
	if a.Indexed && o.GetNamespace() != "" {
		options = append(options, client.MatchingFields{OwnerIndex: string(o.GetUID())})
	}
	found, err := a.listManaged(ctx, kind, options...)
	if err != nil {
		return err
	}
	listedKey := Key{GroupVersionKind: kind}
	if _, listed := a.records.get(o.GetUID(), listedKey); legacy != nil && !listed {
		unlabelled, err := a.listLegacy(ctx, kind, inNamespace, legacy)
		if err != nil {
			return err
		}
		found = append(found, unlabelled...)
	}
	var errs []error
	for _, object := range found {
		k := Key{kind, client.ObjectKeyFromObject(object)}
		if keep[k.unversioned()] || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := a.pruneObject(ctx, o, k, object); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", k.NamespacedName, err))
		}
	}
	if legacy != nil && len(errs) == 0 {
		a.records.Store(recordKey{o.GetUID(), listedKey}, record{})
	}
	return errors.Join(errs...)
}

// listLegacy returns the objects of a legacy operator that do not have the labels of the component.
func (a *Applier) listLegacy(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) (unlabelled []client.Object, err error) {
	list := objectmeta.NewList(kind)
	if err := a.Live.List(ctx, list, options...); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("listing the objects of legacy operators: %w", err)
	}
	for i := range list.Items {
		if !HasComponentLabels(&list.Items[i], a.Component) {
			unlabelled = append(unlabelled, &list.Items[i])
		}
	}
	return unlabelled, nil
}

// pruneObject deletes an object whose controller or only owner is o.
func (a *Applier) pruneObject(ctx context.Context, o owner, k Key, object metav1.Object) error {
	refs := object.GetOwnerReferences()
	if i := slices.IndexFunc(refs, o.matches); i < 0 || len(refs) > 1 && !ptr.Deref(refs[i].Controller, false) {
		return nil
	}
	return a.deleteRecorded(ctx, o.GetUID(), k, object.GetUID())
}
