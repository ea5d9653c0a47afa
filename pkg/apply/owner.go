package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// owner is the object that owns the children of one call.
type owner struct {
	client.Object
	kind schema.GroupVersionKind
	// terminating calls ownerTerminating once for a whole Apply; nil for other calls.
	terminating func() (bool, error)
}

func newOwner(object client.Object, scheme *runtime.Scheme) owner {
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kind, _ = apiutil.GVKForObject(object, scheme) // fails only for a type that is not in the scheme, so that it could not be read
	}
	return owner{Object: object, kind: kind}
}

// keyOf returns the key of an object of the cluster.
func (a *Applier) keyOf(object client.Object) Key {
	kind, _ := a.Client.GroupVersionKindFor(object) // fails only for a type that is not in the scheme: its requests fail too
	return Key{kind, client.ObjectKeyFromObject(object)}
}

// reference returns the owner reference of an Owned object.
func (o owner) reference() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: o.kind.GroupVersion().String(), Kind: o.kind.Kind, Name: o.GetName(), UID: o.GetUID()}
}

// ownerReferences returns the owner reference of an object with the given ownership; none for Unowned.
func (o owner) ownerReferences(as Ownership) []metav1.OwnerReference {
	if as == Unowned {
		return nil
	}
	ref := o.reference()
	if as == Controlled {
		ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	}
	return []metav1.OwnerReference{ref}
}

// matches reports whether a reference refers to the owner.
func (o owner) matches(ref metav1.OwnerReference) bool { return ref.UID == o.GetUID() }

// matchesPrevious reports whether a reference refers to a previous owner of the same name. Backups restore children with such references.
func (o owner) matchesPrevious(ref metav1.OwnerReference) bool {
	return RefersToPreviousUID(ref, o.kind.GroupKind(), o.GetName(), o.GetUID())
}

// RefersToPreviousUID reports whether a reference refers to an object of the same kind and name with another uid. That object no
// longer exists if both objects are in the same namespace or cluster-scoped.
func RefersToPreviousUID(ref metav1.OwnerReference, kind schema.GroupKind, name string, uid types.UID) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == kind.Group && ref.Kind == kind.Kind && ref.Name == name && ref.UID != uid
}

// hasExpectedReference reports whether the presence of a reference to the owner matches the ownership.
func hasExpectedReference(object metav1.Object, o owner, as Ownership) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), o.matches) == (as != Unowned)
}

// HasComponentLabels reports whether an object has the labels that a component of this operator sets on all its objects.
func HasComponentLabels(object metav1.Object, component string) bool {
	labels := object.GetLabels()
	return labels[names.OperatorLabel] == names.OperatorName && labels[names.ComponentLabel] == component
}

// IsManaged reports whether this component manages an object: it has the labels, or FieldOwner applied it and it has no label of another
// component.
func (a *Applier) IsManaged(object metav1.Object) bool {
	return HasComponentLabels(object, a.Component) ||
		!ManagedByOther(object, a.Component) && slices.ContainsFunc(object.GetManagedFields(), isAppliedBy(a.FieldOwner))
}

// ManagedByOther reports whether the component label of an object has the name of another component of this operator. Field owners and labels
// with an unknown name are ignored.
func ManagedByOther(object metav1.Object, component string) bool {
	label := object.GetLabels()[names.ComponentLabel]
	return label != component && names.IsComponent(label)
}

// checkForeign returns a *ForeignError unless this component may write the live object.
func (a *Applier) checkForeign(o owner, c *child, live *unstructured.Unstructured) error {
	err, other := newForeignError(c.key, live), metav1.GetControllerOfNoCopy(live)
	switch {
	case ManagedByOther(live, a.Component):
		err.Controller = "component " + live.GetLabels()[names.ComponentLabel]
	case other != nil && c.Ownership == Controlled && !o.matches(*other) && !o.matchesPrevious(*other) && !c.dropsReference(*other):
		// err already names the controller
	case a.isWritten(o, live) || c.AdoptIf != nil && c.AdoptIf(live):
		return nil
	}
	return err
}

// isWritten reports whether this component wrote an object: it has the labels, a reference to the owner or to a previous
// owner of the same name, or fields of FieldOwner.
func (a *Applier) isWritten(o owner, live *unstructured.Unstructured) bool {
	refers := func(ref metav1.OwnerReference) bool { return o.matches(ref) || o.matchesPrevious(ref) }
	wrote := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == a.FieldOwner && e.Subresource == "" }
	return HasComponentLabels(live, a.Component) || slices.ContainsFunc(live.GetOwnerReferences(), refers) || slices.ContainsFunc(live.GetManagedFields(), wrote)
}

// newForeignError returns the error for an existing object that has the name of a desired one.
func newForeignError(k Key, live metav1.Object) *ForeignError {
	e := &ForeignError{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
	if other := metav1.GetControllerOfNoCopy(live); other != nil {
		e.Controller = other.Kind + " " + other.Name
	}
	return e
}

// A client that deletes an owner with orphan propagation lets the garbage collector remove the owner references of the children while the
// owner still exists. The caches of owner and children are not synchronized: the child may lose its reference before the cache shows the
// deletion timestamp of the owner. With a restored reference, the garbage collector would delete the child with the owner. The API server
// sets the deletion timestamp before the garbage collector removes references, so a live read of the owner is reliable.

// ownerTerminating reports whether an owner is terminating or deleted. It reads from the API server, but only before an object is
// created or gets a reference to the owner. It lists by name, because list is a permission of every client that watches. The namespace of
// a cluster-scoped owner is ignored.
func (a *Applier) ownerTerminating(ctx context.Context, namespace string, o metav1.OwnerReference) (bool, error) {
	list := objectmeta.NewList(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	if err := a.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: o.Name}); err != nil {
		return false, fmt.Errorf("checking whether %s %s is being deleted: %w", o.Kind, o.Name, err)
	}
	i := slices.IndexFunc(list.Items, func(item metav1.PartialObjectMetadata) bool { return item.UID == o.UID })
	return i < 0 || list.Items[i].DeletionTimestamp != nil, nil
}

// isOrphaned reports whether a managed object lost its owner reference and must not get it back, because the owner is terminating.
func (a *Applier) isOrphaned(ctx context.Context, o owner, c *child, live metav1.Object) (bool, error) {
	if c.Ownership == Unowned || hasExpectedReference(live, o, c.Ownership) || !HasComponentLabels(live, a.Component) {
		return false, nil
	}
	return a.ownerTerminating(ctx, o.GetNamespace(), o.reference())
}

// skipsCreate reports whether an object must not be created because its owner is terminating or deleted, although a stale cache still
// shows the owner. An Unowned object would be leaked. Others would be deleted by the garbage collector and recreated until the cache catches up.
//
// The owner is not read if existed is false and the owner was created after this process started. For an Unowned
// object the owner must also have Finalizer, so that this component deletes the object. A Namespace is not read for the objects inside it.
func (a *Applier) skipsCreate(ctx context.Context, o owner, c *child, existed bool) (bool, error) {
	deletedWithOwner := c.Ownership != Unowned || a.Finalizer != "" && slices.Contains(o.GetFinalizers(), a.Finalizer)
	isNew := deletedWithOwner && !existed && !a.predatesProcess(o)
	if isNew || o.kind.GroupKind() == namespaceKind && o.GetName() == c.key.Namespace {
		return false, nil
	}
	if o.terminating != nil {
		return o.terminating()
	}
	return a.ownerTerminating(ctx, o.GetNamespace(), o.reference())
}

// predatesProcess reports whether an owner was created before this process started, so that it may have objects without a record.
func (a *Applier) predatesProcess(o metav1.Object) bool {
	created := o.GetCreationTimestamp()
	return !created.IsZero() && !created.After(a.startTime)
}

// namespaceKind is the kind of an owner whose deletion deletes all objects inside it.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// addsTerminatingOwner reports whether an update adds a reference to a terminating owner.
func (a *Applier) addsTerminatingOwner(ctx context.Context, original, updated metav1.Object) (bool, error) {
	for _, ref := range updated.GetOwnerReferences() {
		if slices.ContainsFunc(original.GetOwnerReferences(), func(old metav1.OwnerReference) bool { return old.UID == ref.UID }) {
			continue
		}
		if terminating, err := a.ownerTerminating(ctx, updated.GetNamespace(), ref); err != nil || terminating {
			return terminating, err
		}
	}
	return false, nil
}
