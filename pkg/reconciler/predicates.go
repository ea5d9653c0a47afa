package reconciler

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// Changed matches updates of the spec, labels or annotations, updates of a relist, and all events other than updates.
func Changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, Relisted())
}

// Relisted matches all events except updates with a new resourceVersion. An update without one comes from a relist: the CRD, and so the
// stored fields, may have changed.
func Relisted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		version := e.ObjectNew.GetResourceVersion()
		return version != "" && version == e.ObjectOld.GetResourceVersion()
	}}
}

// ManagedBy matches objects with the labels of a component, and updates that remove the labels. All deletions match, because
// an object may lose its labels before its deletion.
func ManagedBy(component string) predicate.Predicate {
	p := MatchesOldOrNew(func(o client.Object) bool { return apply.HasComponentLabels(o, component) })
	p.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return p
}

// MatchesOldOrNew matches the events of matching objects, and updates whose old or new object matches.
func MatchesOldOrNew(matches func(client.Object) bool) predicate.Funcs {
	p := predicate.NewPredicateFuncs(matches)
	p.UpdateFunc = func(e event.UpdateEvent) bool { return matches(e.ObjectOld) || matches(e.ObjectNew) }
	return p
}
