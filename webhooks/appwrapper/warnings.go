package appwrapper

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// warnings tells the user what of their AppWrapper will have no effect, will be done otherwise, or is not known here. Nothing of it
// is a reason to refuse the AppWrapper.
func warnings(wrapper *v1beta2.AppWrapper) []string {
	all := ineffective(wrapper)
	for i := range wrapper.Spec.Components {
		component := &wrapper.Spec.Components[i]
		object, err := podset.Decode(component)
		if err != nil {
			continue
		}
		path := field.NewPath("spec", "components").Index(i)
		if !queued(wrapper) {
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
