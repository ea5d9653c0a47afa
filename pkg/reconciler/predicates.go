package reconciler

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed admits changes of the spec, labels and annotations, and relisted objects.
func Changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, Relisted())
}

// Relisted admits updates to the same resourceVersion: the CRD may have changed, and with it the fields that are returned or stored.
func Relisted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		version := e.ObjectNew.GetResourceVersion()
		return version != "" && version == e.ObjectOld.GetResourceVersion()
	}}
}
