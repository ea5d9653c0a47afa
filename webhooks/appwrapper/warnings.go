package appwrapper

import (
	"fmt"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/podset"
)

// warnings tells the user what of their AppWrapper will have no effect, or is not known here. Nothing of it is a reason to
// refuse the AppWrapper.
func warnings(wrapper *v1beta2.AppWrapper) []string {
	all := ineffective(wrapper)
	for i := range wrapper.Spec.Components {
		component := &wrapper.Spec.Components[i]
		object, err := podset.Decode(component)
		if err != nil {
			continue
		}
		sets, err := podset.Of(component)
		if err != nil {
			continue
		}
		for _, set := range sets {
			for _, problem := range podset.UnknownFields(object.Object, set.Path) {
				all = append(all, fmt.Sprintf("spec.components[%d]: %s", i, problem))
			}
		}
	}
	return all
}
