package appwrapper

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/podset"
)

// queued tells whether Kueue asks quota for an AppWrapper.
func queued(wrapper *v1beta2.AppWrapper) bool { return wrapper.Labels[v1beta2.LabelQueue] != "" }

// quotaProblem is a reason why a component cannot be queued.
type quotaProblem struct {
	place *field.Path
	text  string
	// inQueue is what comes of it in a queue, and the cure; empty when the text has both.
	inQueue string
}

// quotaProblems returns why a component cannot be queued: its pods would use more than their quota, or Kueue would not understand
// them. Kueue skips a pod template with a field that it does not know, and then never starts the AppWrapper, without a word.
func quotaProblems(component *v1beta2.AppWrapperComponent, object *unstructured.Unstructured, path *field.Path) []quotaProblem {
	var out []quotaProblem
	for _, fault := range podset.BeyondQuota(object) {
		place, _ := fault.Value.(string)
		out = append(out, quotaProblem{place: path.Child("template", place), text: fault.Message})
	}
	sets, err := podset.Of(component)
	if err != nil {
		return out // which is reported as such
	}
	for _, set := range sets {
		for _, problem := range podset.UnknownFields(object.Object, set.Path) {
			out = append(out, quotaProblem{place: path, text: problem,
				inQueue: ": Kueue cannot read a pod template with it, and would never start the AppWrapper: remove the field"})
		}
	}
	return out
}

func quotaErrors(component *v1beta2.AppWrapperComponent, object *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range quotaProblems(component, object, path) {
		errs = append(errs, field.Forbidden(problem.place, problem.text+problem.inQueue))
	}
	return errs
}

// newlyQueued returns why an AppWrapper that gets a queue label later cannot be queued.
func newlyQueued(old, updated *v1beta2.AppWrapper) field.ErrorList {
	if queued(old) || !queued(updated) {
		return nil
	}
	var errs field.ErrorList
	for i := range updated.Spec.Components {
		component := &updated.Spec.Components[i]
		if object, err := podset.Decode(component); err == nil {
			errs = append(errs, quotaErrors(component, object, field.NewPath("spec", "components").Index(i))...)
		}
	}
	return errs
}
