package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Apply brings all desired objects of an owner to their desired state, in order. An object that fails does not keep
// the later ones from being written; the result joins one *Error for each that failed. An object that is being
// deleted is left alone without an error: its deletion event brings the owner back. So is one that has lost its
// reference to an owner that is being deleted.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired Desired) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range desired {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		c, err := newChild(object)
		if err == nil {
			err = a.applyOne(ctx, o, c)
		}
		if err != nil {
			errs = append(errs, &Error{Kind: c.key.Kind, Namespace: c.key.Namespace, Name: c.key.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) applyOne(ctx context.Context, o owner, c child) error {
	if err := o.mayOwn(c); err != nil {
		return err
	}
	if c.Ownership == Shared {
		defer a.shared.lock(c.key)()
	}
	err := a.settle(ctx, o, c)
	if err != nil {
		a.memory.drop(o.uid, c.key) // what is not known for sure is looked at again
	}
	return err
}

// settle decides from memory and cache what is to be done, and asks the API server only when these do not suffice.
func (a *Applier) settle(ctx context.Context, o owner, c child) error {
	known, ok := a.memory.recall(o.uid, c.key)
	if !ok {
		return a.inspect(ctx, o, c)
	}
	cached, err := a.cached(ctx, c.key)
	switch {
	case err != nil:
		return err
	case cached == nil || cached.GetUID() != known.uid: // gone, replaced, or not yet in the cache
		return a.inspect(ctx, o, c)
	case cached.GetDeletionTimestamp() != nil:
		a.memory.drop(o.uid, c.key)
		return nil
	case known.intent == c.intent && a.untouched(known, o, c, cached):
		a.skip(c.key.Kind)
		return nil
	case known.intent != c.intent && c.Ownership != Shared && tied(cached, o, c.Ownership):
		return a.write(ctx, o, c, known.uid, nil, updated)
	default:
		return a.inspect(ctx, o, c)
	}
}

// untouched says that a cached object still holds all that we wrote, or is older than our write.
func (a *Applier) untouched(known record, o owner, c child, cached client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), known.version); err == nil && order < 0 {
		return true // the cache has not seen our own write yet
	}
	return known.fields != digest{} &&
		known.fields == digestOf(cached.GetManagedFields(), a.FieldOwner) &&
		a.labelled(cached) && tied(cached, o, c.Ownership)
}

// labelled says whether an object bears the labels of this operator and component.
func (a *Applier) labelled(object metav1.Object) bool {
	labels := object.GetLabels()
	return labels[names.OperatorLabel] == names.OperatorName && labels[names.ComponentLabel] == a.Component
}

// tied says whether the reference of an object to the owner is there or not there as its ownership demands.
func tied(object metav1.Object, o owner, as Ownership) bool {
	has := false
	for _, ref := range object.GetOwnerReferences() {
		has = has || o.is(ref)
	}
	return has == (as != Unowned)
}

// cached reads an object in the form in which the cache holds it; nil when it is not there. The result is part of
// the cache and must not be changed.
func (a *Applier) cached(ctx context.Context, k key) (client.Object, error) {
	var object client.Object = &metav1.PartialObjectMetadata{}
	if a.whole.Has(k.GroupVersionKind) {
		typed, err := a.Client.Scheme().New(k.GroupVersionKind)
		if err != nil {
			return nil, fmt.Errorf("making an empty %s: %w", k.Kind, err)
		}
		whole, ok := typed.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no API object", typed)
		}
		object = whole
	}
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	err := a.Client.Get(ctx, k.NamespacedName, object, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it from the cache: %w", err)
	}
	return object, nil
}

// inspect reads the live object whole, decides whether it is ours to write, and writes it when it is not settled.
func (a *Applier) inspect(ctx context.Context, o owner, c child) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(c.key.GroupVersionKind)
	err := a.Live.Get(ctx, c.key.NamespacedName, live)
	if apierrors.IsNotFound(err) {
		return a.write(ctx, o, c, "", nil, created)
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if err := a.claim(o, c, live); err != nil {
		if _, foreign := errors.AsType[*ForeignError](err); foreign && c.Yields {
			a.skip(c.key.Kind)
			return nil
		}
		return err
	}
	if live.GetDeletionTimestamp() != nil {
		a.memory.drop(o.uid, c.key)
		if a.labelled(live) {
			return nil
		}
		return &DeletingError{Kind: c.key.Kind, Namespace: c.key.Namespace, Name: c.key.Name}
	}
	if released, err := a.released(ctx, o, c, live); err != nil || released {
		a.memory.drop(o.uid, c.key)
		return err
	}
	if err := a.prepare(ctx, o, c, live); err != nil {
		return err
	}
	owned := a.owned(live)
	others := otherOwners(o, c, live, owned)
	want, err := c.render(a.Component, o, others)
	if err != nil {
		return err
	}
	if a.labelled(live) && tied(live, o, c.Ownership) && settled(want, live, owned, a.Client.Scheme()) {
		a.skip(c.key.Kind)
		a.remember(o, c, live)
		return nil
	}
	return a.write(ctx, o, c, live.GetUID(), others, updated)
}

// write sends one server-side apply. The uid, when there is one, keeps an object that was deleted meanwhile from
// being made anew by what is meant as an update.
func (a *Applier) write(ctx context.Context, o owner, c child, uid types.UID, others []metav1.OwnerReference,
	how func(*Changes) *int,
) error {
	body, err := c.render(a.Component, o, others)
	if err != nil {
		return err
	}
	if uid != "" {
		body.SetUID(uid)
	}
	a.wrote(c.key.Kind, verbApply)
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(a.FieldOwner), client.ForceOwnership)
	if err != nil {
		return err
	}
	count(ctx, how)
	a.remember(o, c, body) // the client has put the answer in its place
	return nil
}

func (a *Applier) remember(o owner, c child, answer *unstructured.Unstructured) {
	a.memory.remember(o.uid, c.key, record{
		intent:  c.intent,
		uid:     answer.GetUID(),
		version: answer.GetResourceVersion(),
		fields:  digestOf(answer.GetManagedFields(), a.FieldOwner),
	})
}
