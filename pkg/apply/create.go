package apply

import (
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
)

// Create writes an object that is made once and never changed, such as a Job, whose template is immutable. It bears the
// labels and the reference that Apply would give it. When the name is taken by an object of the same owner, that one
// stands and there is no error; any other object of the name is a *ForeignError. Errors are *Error.
func (a *Applier) Create(ctx context.Context, owner client.Object, object Object) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	c, err := newChild(object)
	if err == nil {
		err = a.create(ctx, o, c)
	}
	return c.key.failed(err)
}

func (a *Applier) create(ctx context.Context, o owner, c child) error {
	if err := o.mayOwn(c); err != nil {
		return err
	}
	if abandoned, err := a.abandoned(ctx, o, c, false); err != nil || abandoned {
		return err
	}
	body, err := c.render(a.Component, o, nil)
	if err != nil {
		return err
	}
	a.wrote(c.key.Kind, verbCreate)
	err = a.Client.Create(ctx, body, client.FieldOwner(a.FieldOwner))
	if err == nil {
		count(ctx, created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := a.live(ctx, c.key)
	if err != nil {
		return err
	}
	if !tied(live, o, c.Ownership) || !a.labelled(live) {
		return foreign(c.key, live)
	}
	return nil
}

// foreign describes an object that takes the name of one of ours.
func foreign(k key, live metav1.Object) *ForeignError {
	e := &ForeignError{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
	if other := metav1.GetControllerOfNoCopy(live); other != nil {
		e.Controller = other.Kind + " " + other.Name
	}
	return e
}

// ErrCannotOwn says that an object cannot get a controller reference to its owner: it has another controller already, or
// lives outside the namespace of the owner.
var ErrCannotOwn = errors.New("the owner cannot control it")

// CreateAsIs makes an object that a user described as a whole. It is made once and left to the user and to the controllers of
// its kind afterwards, so it is created and not applied, and bears none of our labels. Only a controller reference to the
// owner is added. The object holds the server's answer afterwards. Errors are ErrCannotOwn, or those of the API server as
// they came: AlreadyExists says nothing about who made it.
func (a *Applier) CreateAsIs(ctx context.Context, owner client.Object, object *unstructured.Unstructured) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	if o.Namespace != "" && object.GetNamespace() != o.Namespace {
		return fmt.Errorf("%w: it is not in namespace %q", ErrCannotOwn, o.Namespace)
	}
	if other := metav1.GetControllerOf(object); other != nil && other.UID != o.uid {
		return fmt.Errorf("%w: %s %s controls it", ErrCannotOwn, other.Kind, other.Name)
	}
	var refs []metav1.OwnerReference
	for _, ref := range object.GetOwnerReferences() {
		if !o.is(ref) {
			refs = append(refs, ref)
		}
	}
	object.SetOwnerReferences(append(refs, *o.reference(Controlled)))
	a.wrote(object.GetKind(), verbCreate)
	return a.Client.Create(ctx, object, client.FieldOwner(a.FieldOwner))
}

// ErrNotAdoptable says that an object is not what CreateAsIs would have made, or that another object controls it.
var ErrNotAdoptable = errors.New("it differs from what would be created, or has a controller")

// AdoptAsIs gives the owner control of an object without a controller, as after a restore that strips owner references, if applying
// what CreateAsIs would make changes nothing of it. Nothing but the reference is written. Errors are ErrNotAdoptable, or those of
// the API server as they came.
func (a *Applier) AdoptAsIs(ctx context.Context, owner client.Object, object *unstructured.Unstructured) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	k := key{object.GroupVersionKind(), client.ObjectKeyFromObject(object)}
	live, err := a.live(ctx, k)
	if err != nil {
		return err
	}
	if metav1.GetControllerOfNoCopy(live) != nil || live.GetDeletionTimestamp() != nil {
		return ErrNotAdoptable
	}
	same, err := a.isApplied(ctx, object, live)
	if err != nil {
		return err
	}
	if !same {
		return ErrNotAdoptable
	}
	refs := append(live.GetOwnerReferences(), *o.reference(Controlled))
	err = a.patch(ctx, verbAdopt, k, live, []operation{{Operation: "add", Path: "/metadata/ownerReferences", Value: refs}, atVersion(live)})
	if err == nil {
		count(ctx, updated)
		object.SetUID(live.GetUID())
	}
	return err
}

// isApplied asks the API server whether applying an object would change the live one in more than the bookkeeping of field owners.
func (a *Applier) isApplied(ctx context.Context, object, live *unstructured.Unstructured) (bool, error) {
	want := object.DeepCopy()
	want.SetGenerateName("")
	want.SetOwnerReferences(nil)
	want.SetUID(live.GetUID())
	want.SetResourceVersion(live.GetResourceVersion())
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(a.FieldOwner), client.ForceOwnership, client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) { // as for a field that cannot be changed
		return false, nil
	}
	before := live.DeepCopy()
	before.SetManagedFields(nil)
	want.SetManagedFields(nil)
	return equality.Semantic.DeepEqual(before.Object, want.Object), err
}

// Delete deletes exactly the object with the given uid, in the background. Grace, when not nil, replaces the period in
// seconds that its kind grants. Errors are those of the API server as they came: NotFound says that it is gone, Conflict
// that another object has the name.
func (a *Applier) Delete(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName, uid types.UID, grace *int64) error {
	return a.deleteWith(ctx, key{kind, name}, &client.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: new(metav1.DeletePropagationBackground), GracePeriodSeconds: grace,
	})
}

func (a *Applier) deleteWith(ctx context.Context, k key, options *client.DeleteOptions) error {
	a.wrote(k.Kind, verbDelete)
	err := a.Client.Delete(ctx, metadata(k), options)
	if err == nil {
		count(ctx, removed)
	}
	return err
}

// PatchExisting changes a live object that is created once and never applied again, such as a volume claim whose spec is nearly all
// immutable: it sends what change did to live as a merge patch, and nothing when change did nothing. live must be the
// caller's own copy; it holds the server's answer afterwards. A write that has come in between is a conflict error, an
// object that is being deleted is left alone, and so is one that would get a reference to an owner that is. Errors are *Error.
func (a *Applier) PatchExisting(ctx context.Context, live client.Object, change func()) error {
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	before, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no API object", live)
	}
	change()
	if live.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(before, live) {
		a.skip(gvk.Kind)
		return nil
	}
	if leaving, err := a.gainsLeaving(ctx, before, live); err != nil || leaving {
		return key{gvk, client.ObjectKeyFromObject(live)}.failed(err)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	a.wrote(gvk.Kind, verbPatch)
	if err := a.Client.Patch(ctx, live, patch, client.FieldOwner(a.FieldOwner)); err != nil {
		return key{gvk, client.ObjectKeyFromObject(live)}.failed(err)
	}
	count(ctx, updated)
	return nil
}
