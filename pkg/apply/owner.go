package apply

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// owner is the object that owns the children of one call.
type owner struct {
	schema.GroupVersionKind
	types.NamespacedName
	uid          types.UID
	creationTime time.Time
	finalizers   []string
	// terminating returns ownerTerminating, with one request for a whole Apply; nil for other calls.
	terminating func() (bool, error)
}

func newOwner(object client.Object, scheme *runtime.Scheme) (owner, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		var err error
		if gvk, err = apiutil.GVKForObject(object, scheme); err != nil {
			return owner{}, fmt.Errorf("finding the kind of the owner: %w", err)
		}
	}
	name, created := client.ObjectKeyFromObject(object), object.GetCreationTimestamp().Time
	return owner{GroupVersionKind: gvk, NamespacedName: name, uid: object.GetUID(), creationTime: created, finalizers: object.GetFinalizers()}, nil
}

// ownerReference returns the owner reference of an object with the given ownership; nil for Unowned.
func (o owner) ownerReference(as Ownership) *metav1.OwnerReference {
	apiVersion, kind := o.ToAPIVersionAndKind()
	ref := &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.Name, UID: o.uid}
	switch as {
	case Unowned:
		return nil
	case Controlled:
		ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	case Shared:
	}
	return ref
}

// checkNamespace returns an error for an owner reference across namespaces: the garbage collector would delete the child.
func (o owner) checkNamespace(c *child) error {
	if c.Ownership == Unowned || o.Namespace == "" || o.Namespace == c.key.Namespace {
		return nil
	}
	return fmt.Errorf("%s %s cannot own an object outside its namespace", o.Kind, o.NamespacedName)
}

// matches reports whether a reference refers to the owner.
func (o owner) matches(ref metav1.OwnerReference) bool {
	return ref.UID == o.uid
}

// matchesPrevious reports whether a reference refers to a previous owner of the same name. Backups restore children with such references.
func (o owner) matchesPrevious(ref metav1.OwnerReference) bool {
	return RefersToPreviousUID(ref, schema.GroupKind{Group: o.Group, Kind: o.Kind}, o.Name, o.uid)
}

// RefersToPreviousUID reports whether a reference refers to an object of the same kind and name with another uid. That object no
// longer exists if both are in one namespace or cluster-scoped.
func RefersToPreviousUID(ref metav1.OwnerReference, kind schema.GroupKind, name string, uid types.UID) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == kind.Group && ref.Kind == kind.Kind && ref.Name == name && ref.UID != uid
}

// HasComponentLabels reports whether an object has the labels that a component of this operator sets on all its objects.
func HasComponentLabels(object metav1.Object, component string) bool {
	labels := object.GetLabels()
	return labels[names.OperatorLabel] == names.OperatorName && labels[names.ComponentLabel] == component
}

// AppliedBy reports whether a component applied an object that may have lost its labels: fieldOwner applied it, and it has no label of
// another component.
func AppliedBy(object metav1.Object, component, fieldOwner string) bool {
	return !ManagedByOther(object, component) && slices.ContainsFunc(object.GetManagedFields(), isAppliedBy(fieldOwner))
}

// IsManaged reports whether this component manages an object, by its labels or by its field owner.
func (a *Applier) IsManaged(object metav1.Object) bool {
	return HasComponentLabels(object, a.Component) || AppliedBy(object, a.Component, a.FieldOwner)
}

// ManagedByOther reports whether the component label of an object has the name of another component of this operator, whichever client
// owns its fields. A label with an unknown name is ignored.
func ManagedByOther(object metav1.Object, component string) bool {
	label := object.GetLabels()[names.ComponentLabel]
	return label != component && names.IsComponent(label)
}

// ManagedByPredicate matches objects with the labels of a component, and updates that remove the labels. All deletions match, because
// labels may be lost before.
func ManagedByPredicate(component string) predicate.Predicate {
	p := MatchesOldOrNew(func(o client.Object) bool { return HasComponentLabels(o, component) })
	p.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return p
}

// MatchesOldOrNew matches objects, and updates of which the old or the new object matches.
func MatchesOldOrNew(matches func(client.Object) bool) predicate.Funcs {
	p := predicate.NewPredicateFuncs(matches)
	p.UpdateFunc = func(e event.UpdateEvent) bool { return matches(e.ObjectOld) || matches(e.ObjectNew) }
	return p
}
