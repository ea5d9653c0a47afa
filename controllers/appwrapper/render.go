package appwrapper

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Render returns the components of an AppWrapper as they are created when it is admitted, in their order. Names that a template leaves open
// are completed from the UID, which an AppWrapper outside a cluster does not have. What Kueue adds is in spec.components.podSetInfos
// once there is quota. Unknown fields are errors.
func Render(settings Settings, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	aw := &awv1beta2.AppWrapper{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, aw, true); err != nil {
		return nil, nil, fmt.Errorf("decoding AppWrapper %s: %w", object.GetName(), err)
	}
	if !aw.Ours() {
		return nil, []string{"nothing is created: spec.managedBy names another controller"}, nil
	}
	aw.Status = awv1beta2.AppWrapperStatus{}
	if err := fillIn(aw); err != nil {
		return nil, nil, err
	}
	for i := range aw.Spec.Components {
		u, warnings, err := instantiate(aw, i, settings)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.components[%d]: %w", i, err)
		}
		for _, warning := range warnings {
			notes = append(notes, fmt.Sprintf("spec.components[%d]: %s", i, warning))
		}
		u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: awv1beta2.GroupVersion.String(), Kind: awv1beta2.Kind, Name: aw.Name, UID: aw.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}))
		objects = append(objects, u)
	}
	if aw.Spec.Suspend {
		notes = append(notes, "nothing of this exists while spec.suspend is true: Kueue sets it to false when there is quota")
	}
	return objects, notes, nil
}
