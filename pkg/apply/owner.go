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

// owner is the object for which children are written.
type owner struct {
	schema.GroupVersionKind
	types.NamespacedName
	uid types.UID
	// born is when it was created.
	born time.Time
	// left says whether the owner goes or is gone, by one request for a whole Apply. See [Applier.abandoned].
	left func() (bool, error)
}

func newOwner(object client.Object, scheme *runtime.Scheme) (owner, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		var err error
		if gvk, err = apiutil.GVKForObject(object, scheme); err != nil {
			return owner{}, fmt.Errorf("finding the kind of the owner: %w", err)
		}
	}
	return owner{GroupVersionKind: gvk, NamespacedName: client.ObjectKeyFromObject(object), uid: object.GetUID(), born: object.GetCreationTimestamp().Time}, nil
}

// reference returns the owner reference that an object of the given ownership bears, or nil.
func (o owner) reference(as Ownership) *metav1.OwnerReference {
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

// mayOwn refuses references that the garbage collector would punish with the deletion of the child.
func (o owner) mayOwn(c child) error {
	if c.Ownership == Unowned || o.Namespace == "" || o.Namespace == c.key.Namespace {
		return nil
	}
	return fmt.Errorf("%s %s cannot own an object outside its namespace", o.Kind, o.NamespacedName)
}

// is says whether a reference points at this very owner.
func (o owner) is(ref metav1.OwnerReference) bool {
	return ref.UID == o.uid
}

// wasRestored says whether a reference points at an earlier life of the owner. Backups bring children back with such references.
func (o owner) wasRestored(ref metav1.OwnerReference) bool {
	return RefersToPreviousUID(ref, schema.GroupKind{Group: o.Group, Kind: o.Kind}, o.Name, o.uid)
}

// RefersToPreviousUID says whether a reference points at an object of the same kind and name with another uid. That one is gone, if both are of
// cluster scope or in one namespace.
func RefersToPreviousUID(ref metav1.OwnerReference, kind schema.GroupKind, name string, uid types.UID) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == kind.Group && ref.Kind == kind.Kind && ref.Name == name && ref.UID != uid
}

// IsOurs says whether an object bears the labels that a component of this operator puts on all that it writes.
func IsOurs(object metav1.Object, component string) bool {
	labels := object.GetLabels()
	return labels[names.OperatorLabel] == names.OperatorName && labels[names.ComponentLabel] == component
}

// AppliedBy says whether an object is the component's although its labels may be lost: it was applied under the component's field
// owner, and no other component has it.
func AppliedBy(object metav1.Object, component, fieldOwner string) bool {
	return !ManagedByOther(object, component) && slices.ContainsFunc(object.GetManagedFields(), applied(fieldOwner))
}

// IsManaged says whether an object is this component's, be it by its labels alone.
func (a *Applier) IsManaged(object metav1.Object) bool {
	return IsOurs(object, a.Component) || AppliedBy(object, a.Component, a.FieldOwner)
}

// ManagedByOther says whether the label of an object names another component of this operator. Then it is never this one's, whichever
// client wrote its fields. A value that names no component is damage, and no claim.
func ManagedByOther(object metav1.Object, component string) bool {
	named := object.GetLabels()[names.ComponentLabel]
	return named != component && names.IsComponent(named)
}

// ManagedByPredicate admits what bears the labels of a component, at an update also when it bore them before: the new object
// alone does not show that they were taken away. Every deletion is admitted, since labels may be lost by then.
func ManagedByPredicate(component string) predicate.Predicate {
	admits := MatchesOldOrNew(func(o client.Object) bool { return IsOurs(o, component) })
	admits.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return admits
}

// MatchesOldOrNew admits objects for which a test holds, at an update for either state.
func MatchesOldOrNew(holds func(client.Object) bool) predicate.Funcs {
	admits := predicate.NewPredicateFuncs(holds)
	admits.UpdateFunc = func(e event.UpdateEvent) bool { return holds(e.ObjectOld) || holds(e.ObjectNew) }
	return admits
}
