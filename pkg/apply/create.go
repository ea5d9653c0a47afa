package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	if abandoned, err := a.abandoned(ctx, o, c); err != nil || abandoned {
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
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(c.key.GroupVersionKind)
	if err := a.Live.Get(ctx, c.key.NamespacedName, live); err != nil {
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
