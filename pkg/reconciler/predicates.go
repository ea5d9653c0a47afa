package reconciler

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed admits changes of the spec, the labels and the annotations, and objects that were listed again.
func Changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, Relisted())
}

// Relisted admits updates to the same version of an object: its CRD may have changed since, and with it what is read or stored.
func Relisted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		version := e.ObjectNew.GetResourceVersion()
		return version != "" && version == e.ObjectOld.GetResourceVersion()
	}}
}
