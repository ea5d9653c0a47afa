package platform

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// RenderAIHub returns the objects that an AIHub creates in an empty cluster: the namespace of registries and, if the component is enabled,
// the Catalog, without its child objects. The notes describe other effects. Unknown fields and rejected namespaces are errors.
func RenderAIHub(registriesNamespace string, catalog bool, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	a := &platformv1alpha1.AIHub{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, a, true); err != nil {
		return nil, nil, fmt.Errorf("decoding AIHub %s: %w", object.GetName(), err)
	}
	state, problem := a.Annotations[ManagementState], namespaceConflict(registriesNamespace, a.Spec.InstancesNamespace)
	if problem == "" && registriesNamespace == "" && state != stateRemoved {
		problem = reservedNamespaceProblem(a.Spec.InstancesNamespace)
	}
	switch {
	case state == stateUnmanaged, state == stateRemoved && problem == "":
		return nil, []string{"nothing is created: the annotation " + ManagementState + " is " + state}, nil
	case problem != "":
		return nil, nil, errors.New(problem)
	}
	if name := a.Spec.InstancesNamespace; name != a.Spec.ApplicationNamespace {
		namespace := &unstructured.Unstructured{Object: map[string]any{}}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		namespace.SetName(name)
		namespace.SetLabels(map[string]string{LabelRegistries: labelTrue})
		objects = append(objects, namespace)
		notes = append(notes, "namespace "+name+" is created if it does not exist, and never changed")
	}
	notes = append(notes, "registries and the catalog are in namespace "+a.Spec.InstancesNamespace+", HTTPRoutes in "+a.Spec.ApplicationNamespace)
	if domain := aihub.GatewayDomain(&a.Spec); domain != "" {
		notes = append(notes, "they are published under "+domain)
	}
	if !catalog {
		return objects, append(notes, "no Catalog is created: the component modelcatalog is disabled"), nil
	}
	key := types.NamespacedName{Namespace: a.Spec.InstancesNamespace, Name: aihubv1alpha1.CatalogName}
	rendered, err := apply.Render(apply.Desired{{Config: catalogConfig(key)}}, ComponentName, a)
	return append(objects, rendered...), notes, err
}
