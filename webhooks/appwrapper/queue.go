package appwrapper

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// isQueued reports whether Kueue manages the quota of an AppWrapper.
func isQueued(wrapper *v1beta2.AppWrapper) bool { return wrapper.Labels[v1beta2.LabelQueue] != "" }

// unknownFieldCause is the reason to reject an unknown field in a queued AppWrapper: Kueue skips a pod template that it cannot decode,
// and never starts the AppWrapper, without a message.
const unknownFieldCause = ": Kueue cannot decode a pod template with this field, and would never start the AppWrapper; remove the field"

// quotaErrors returns the errors that prevent a component from being queued: its pods may exceed their quota, or Kueue cannot decode a template.
func quotaErrors(component *v1beta2.AppWrapperComponent, object *unstructured.Unstructured, path *field.Path, unknownFieldSuffix string) field.ErrorList {
	errs := podset.QuotaErrors(object, path.Child("template"))
	sets, err := podset.ForComponent(component)
	if err != nil {
		return errs // podset.Check reports the error
	}
	for _, set := range sets {
		for _, problem := range podset.UnknownFields(object.Object, set.Path) {
			errs = append(errs, field.Forbidden(path, problem+unknownFieldSuffix))
		}
	}
	return errs
}

// newlyQueuedErrors returns the errors that prevent an AppWrapper from being queued by an update that adds its queue label.
func newlyQueuedErrors(old, updated *v1beta2.AppWrapper) field.ErrorList {
	if isQueued(old) || !isQueued(updated) {
		return nil
	}
	errs := validateQueuedName(updated)
	for i := range updated.Spec.Components {
		component := &updated.Spec.Components[i]
		if object, err := podset.Decode(component); err == nil {
			errs = append(errs, quotaErrors(component, object, field.NewPath("spec", "components").Index(i), unknownFieldCause)...)
		}
	}
	return errs
}

// warnings returns warnings about fields of an AppWrapper that have no effect, are changed, are unknown, or prevent queueing.
func warnings(wrapper *v1beta2.AppWrapper) []string {
	messages := ineffectiveAnnotations(wrapper)
	for i := range wrapper.Spec.Components {
		component := &wrapper.Spec.Components[i]
		object, err := podset.Decode(component)
		if err != nil {
			continue
		}
		path := field.NewPath("spec", "components").Index(i)
		if !isQueued(wrapper) {
			for _, err := range quotaErrors(component, object, path, "") {
				messages = append(messages, fmt.Sprintf("%s: %s", err.Field, err.Detail))
			}
		}
		if raised := podset.RaiseTTL(object); raised != "" {
			messages = append(messages, fmt.Sprintf("%s: %s", path.Child("template"), raised))
		}
	}
	return messages
}
