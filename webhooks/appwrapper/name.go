package appwrapper

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// nameErrors refuses names that would fail later: the name is the value of a label on every component, and Kueue makes
// DNS labels out of it, one per pod set, with the number of the set at the end.
func nameErrors(wrapper *v1beta2.AppWrapper, podSets int) field.ErrorList {
	path := field.NewPath("metadata", "name")
	longest := validation.DNS1123LabelMaxLength - len("-") - len(strconv.Itoa(max(0, podSets-1)))
	if length := len(wrapper.Name); length > longest {
		detail := fmt.Sprintf("must be at most %d characters: it is a label of the components, and with a number behind it the name of a pod set; this one has %d",
			longest, length)
		return field.ErrorList{field.Invalid(path, wrapper.Name, detail)}
	}
	if wrapper.Labels[v1beta2.LabelQueue] != "" && strings.Contains(wrapper.Name, ".") {
		detail := "must have no dots when the AppWrapper is queued: Kueue makes DNS labels of it"
		return field.ErrorList{field.Invalid(path, wrapper.Name, detail)}
	}
	return nil
}
