package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// Delete deletes exactly the object with the given uid, in the background. Grace, when not nil, replaces the period in
// seconds that its kind grants. Errors are those of the API server as they came: NotFound says that it is gone, Conflict
// that another object has the name.
func (a *Applier) Delete(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName, uid types.UID, grace *int64) error {
	options := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if grace != nil {
		options = append(options, client.GracePeriodSeconds(*grace))
	}
	return a.deleteWith(ctx, key{kind, name}, uid, options...)
}

// deleteWith counts a deletion of exactly the object with the uid.
func (a *Applier) deleteWith(ctx context.Context, k key, uid types.UID, options ...client.DeleteOption) error {
	a.wrote(k.Kind, verbDelete)
	err := a.Client.Delete(ctx, metadata(k), append(options, client.Preconditions{UID: &uid})...)
	if err == nil {
		count(ctx, removed)
	}
	return err
}
