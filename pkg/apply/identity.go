package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// IsOurs says whether an object bears the labels that a component of this operator puts on all that it writes.
func IsOurs(object metav1.Object, component string) bool {
	labels := object.GetLabels()
	return labels[names.OperatorLabel] == names.OperatorName && labels[names.ComponentLabel] == component
}

// WrittenBy says whether an object is the component's although its labels may be lost: it was applied under the component's field
// owner, and no other component has it.
func WrittenBy(object metav1.Object, component, fieldOwner string) bool {
	return !OfAnother(object, component) && slices.ContainsFunc(object.GetManagedFields(), applied(fieldOwner))
}

// Made says whether an object is this component's, be it by its labels alone.
func (a *Applier) Made(object metav1.Object) bool {
	return IsOurs(object, a.Component) || WrittenBy(object, a.Component, a.FieldOwner)
}

// OfAnother says whether the label of an object names another component of this operator. Then it is never this one's, whoever
// wrote its fields. A value that names no component is damage, and nobody's claim.
func OfAnother(object metav1.Object, component string) bool {
	named := object.GetLabels()[names.ComponentLabel]
	return named != component && names.IsComponent(named)
}

// MadeBy admits what bears the labels of a component, at an update also when it bore them before: whoever judged the new object
// alone would not hear that they were taken away. Every deletion is admitted, since labels may be lost by then.
func MadeBy(component string) predicate.Predicate {
	admits := BeforeOrAfter(func(o client.Object) bool { return IsOurs(o, component) })
	admits.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return admits
}

// BeforeOrAfter admits objects for which a test holds, at an update for either state.
func BeforeOrAfter(holds func(client.Object) bool) predicate.Funcs {
	admits := predicate.NewPredicateFuncs(holds)
	admits.UpdateFunc = func(e event.UpdateEvent) bool { return holds(e.ObjectOld) || holds(e.ObjectNew) }
	return admits
}
