package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Create creates an object that is never updated, such as a Job with its immutable template. The object gets the labels and the owner
// reference that Apply would set. An existing object of the same owner is no error; any other is a *ForeignError. Errors are *Error.
func (a *Applier) Create(ctx context.Context, owner client.Object, object Object) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	c, err := newChild(object)
	if err == nil {
		err = a.create(ctx, o, c)
	}
	return c.key.wrapError("", err)
}

func (a *Applier) create(ctx context.Context, o owner, c *child) error {
	if err := o.checkNamespace(c); err != nil {
		return err
	}
	if skip, err := a.skipsCreate(ctx, o, c, false); err != nil || skip {
		return err
	}
	body, err := a.render(o, c)
	if err != nil {
		return err
	}
	err = a.send(ctx, verbCreate, c.key.Kind, created, func() error { return a.Client.Create(ctx, body, client.FieldOwner(a.FieldOwner)) })
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := a.getLive(ctx, c.key)
	if err != nil {
		return err
	}
	if !hasExpectedReference(live, o, c.Ownership) || !a.hasLabels(live) {
		return newForeignError(c.key, live)
	}
	return nil
}

// newForeignError returns the error for an existing object that has the name of a desired one.
func newForeignError(k key, live metav1.Object) *ForeignError {
	e := &ForeignError{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
	if other := metav1.GetControllerOfNoCopy(live); other != nil {
		e.Controller = other.Kind + " " + other.Name
	}
	return e
}

// ErrCannotOwn is returned for an object that cannot have a controller reference to the owner: it has another controller or is in
// another namespace.
var ErrCannotOwn = errors.New("the owner cannot control it")

// CreateAsIs creates an object from a template of a user. The object is never applied or updated afterwards and has no labels of this
// operator; only a controller reference is added. The response is stored in object. Errors are ErrCannotOwn or unwrapped errors of
// the API server. AlreadyExists does not show who created the existing object.
func (a *Applier) CreateAsIs(ctx context.Context, owner client.Object, object *unstructured.Unstructured) error {
	if err := controllerutil.SetControllerReference(owner, object, a.Client.Scheme()); err != nil {
		return fmt.Errorf("%w: %w", ErrCannotOwn, err)
	}
	return a.send(ctx, verbCreate, object.GetKind(), created, func() error { return a.Client.Create(ctx, object, client.FieldOwner(a.FieldOwner)) })
}

// ErrNotAdoptable is returned for an object that differs from the result of CreateAsIs or has a controller.
var ErrNotAdoptable = errors.New("it differs from what would be created, or has a controller")

// AdoptAsIs adds a controller reference to an object without a controller, as after a restore that strips owner references. A dry-run
// apply of the template must leave the object unchanged. Nothing but the reference is written. Errors are ErrNotAdoptable or
// unwrapped errors of the API server.
func (a *Applier) AdoptAsIs(ctx context.Context, owner client.Object, object *unstructured.Unstructured) error {
	k := key{object.GroupVersionKind(), client.ObjectKeyFromObject(object)}
	live, err := a.getLive(ctx, k)
	if err != nil {
		return err
	}
	adopted := live.DeepCopy()
	if metav1.GetControllerOfNoCopy(live) != nil || live.GetDeletionTimestamp() != nil ||
		controllerutil.SetControllerReference(owner, adopted, a.Client.Scheme()) != nil {
		return ErrNotAdoptable
	}
	if noop, err := a.isApplyNoop(ctx, object, live); err != nil || !noop {
		return cmp.Or(err, ErrNotAdoptable)
	}
	if err = a.patch(ctx, verbAdopt, k, live, adopted); err == nil {
		object.SetUID(live.GetUID())
	}
	return err
}

// isApplyNoop reports, by a dry run, whether an apply would change nothing but the managed fields of the live object.
func (a *Applier) isApplyNoop(ctx context.Context, object, live *unstructured.Unstructured) (bool, error) {
	applied := object.DeepCopy()
	applied.SetGenerateName("")
	applied.SetOwnerReferences(nil)
	applied.SetUID(live.GetUID())
	applied.SetResourceVersion(live.GetResourceVersion())
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(a.FieldOwner), client.ForceOwnership, client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) { // an immutable field differs, for example
		return false, nil
	}
	original := live.DeepCopy()
	original.SetManagedFields(nil)
	applied.SetManagedFields(nil)
	return equality.Semantic.DeepEqual(original.Object, applied.Object), err
}

// Delete deletes the object with the given uid in the background. gracePeriodSeconds, if not nil, overrides the default of its
// kind. Errors are unwrapped errors of the API server: NotFound if it does not exist, Conflict if it has another uid.
func (a *Applier) Delete(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName, uid types.UID, gracePeriodSeconds *int64) error {
	return a.delete(ctx, key{kind, name}, uid, background, &client.DeleteOptions{GracePeriodSeconds: gracePeriodSeconds})
}

func (a *Applier) delete(ctx context.Context, k key, uid types.UID, options ...client.DeleteOption) error {
	options = append(options, client.Preconditions{UID: &uid})
	return a.send(ctx, verbDelete, k.Kind, deleted, func() error { return a.Client.Delete(ctx, newMetadata(k), options...) })
}

// patch sends the changes of an object as a merge patch and stores the response in changed. A concurrent write is a conflict error.
func (a *Applier) patch(ctx context.Context, verb string, k key, original, changed client.Object) error {
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	return a.send(ctx, verb, k.Kind, updated, func() error { return a.Client.Patch(ctx, changed, patch, client.FieldOwner(a.FieldOwner)) })
}

// PatchExisting sends the modifications of mutate as a merge patch. It serves objects that are created once and never applied again, such as
// a PersistentVolumeClaim with its mostly immutable spec. live must be the caller's own copy; the response is stored in it. A
// concurrent write is a conflict error. The patch is skipped if nothing changed, if the object is terminating, or if it
// would get a reference to a terminating owner. Errors are *Error.
func (a *Applier) PatchExisting(ctx context.Context, live client.Object, mutate func()) error {
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	original, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no API object", live)
	}
	mutate()
	if live.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(original, live) {
		a.countSkipped(gvk.Kind)
		return nil
	}
	k := key{gvk, client.ObjectKeyFromObject(live)}
	if skip, err := a.addsTerminatingOwner(ctx, original, live); err != nil || skip {
		return k.wrapError("", err)
	}
	return k.wrapError("", a.patch(ctx, verbPatch, k, original, live))
}
