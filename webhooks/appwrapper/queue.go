package appwrapper

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// queued tells whether Kueue asks quota for an AppWrapper.
func isQueued(wrapper *v1beta2.AppWrapper) bool { return wrapper.Labels[v1beta2.LabelQueue] != "" }

// neverStarted is what comes of a field in a queue that is not known, and what to do: Kueue skips a pod template that it cannot read, and then
// never starts the AppWrapper, without a word.
const neverStarted = ": Kueue cannot read a pod template with it, and would never start the AppWrapper: remove the field"

// quotaErrors returns why a component cannot be queued: its pods would use more than their quota, or Kueue would not understand them.
func quotaErrors(component *v1beta2.AppWrapperComponent, object *unstructured.Unstructured, path *field.Path, ofUnknown string) field.ErrorList {
	errs := podset.QuotaErrors(object, path.Child("template"))
	sets, err := podset.ForComponent(component)
	if err != nil {
		return errs // which is reported as such
	}
	for _, set := range sets {
		for _, problem := range podset.UnknownFields(object.Object, set.Path) {
			errs = append(errs, field.Forbidden(path, problem+ofUnknown))
		}
	}
	return errs
}

// newlyQueued returns why an AppWrapper that gets a queue label later cannot be queued.
func newlyQueuedErrors(old, updated *v1beta2.AppWrapper) field.ErrorList {
	if isQueued(old) || !isQueued(updated) {
		return nil
	}
	var errs field.ErrorList
	for i := range updated.Spec.Components {
		component := &updated.Spec.Components[i]
		if object, err := podset.Decode(component); err == nil {
			errs = append(errs, quotaErrors(component, object, field.NewPath("spec", "components").Index(i), neverStarted)...)
		}
	}
	return errs
}

// warnings tells the user what of their AppWrapper will have no effect, will be done otherwise, or is not known here. Nothing of it
// is a reason to refuse the AppWrapper.
func warnings(wrapper *v1beta2.AppWrapper) []string {
	all := ineffectiveAnnotations(wrapper)
	for i := range wrapper.Spec.Components {
		component := &wrapper.Spec.Components[i]
		object, err := podset.Decode(component)
		if err != nil {
			continue
		}
		path := field.NewPath("spec", "components").Index(i)
		if !isQueued(wrapper) {
			for _, err := range quotaErrors(component, object, path, "") {
				all = append(all, fmt.Sprintf("%s: %s", err.Field, err.Detail))
			}
		}
		if raised := podset.RaiseTTL(object); raised != "" {
			all = append(all, fmt.Sprintf("%s: %s", path.Child("template"), raised))
		}
	}
	return all
}
