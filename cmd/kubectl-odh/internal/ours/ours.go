// Package ours lists the components of the manager and the kinds that each looks after. A test holds it against the table of the
// manager.
package ours

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	servingv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	servingv1beta1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Component is a part of the manager that can be switched on and off.
type Component struct {
	// Name in flags and settings.
	Name string
	// Requires are the kinds without which it waits.
	Requires []schema.GroupVersionKind
	// Any tells that one of the required kinds is enough.
	Any bool
	// Kinds are those that it looks after.
	Kinds []Kind
}

// Kind is a kind that a component looks after.
type Kind struct {
	schema.GroupVersionKind
	// Ours tells whether an object of the kind is for the component; nil when all are.
	Ours func(*unstructured.Unstructured) bool
}

// Components returns all, in the order in which they are shown.
func Components() []Component {
	mlflow := mlflowv1.GroupVersion.WithKind("MLflow")
	registry := v1beta1.GroupVersion.WithKind(v1beta1.Kind)
	catalog := aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	wrapper := awv1beta2.GroupVersion.WithKind(awv1beta2.Kind)
	predictor := servingv1alpha1.GroupVersion.WithKind("Predictor")
	hub, module := platformv1alpha1.GroupVersion.WithKind("AIHub"), platformv1alpha1.GroupVersion.WithKind("MLflowOperator")
	return []Component{
		{Name: "platform", Requires: []schema.GroupVersionKind{module, hub}, Any: true, Kinds: all(module, hub)},
		{Name: "mlflow", Requires: []schema.GroupVersionKind{mlflow}, Kinds: all(mlflow, mlflowconfigv1.GroupVersion.WithKind("MLflowConfig"))},
		{Name: "modelregistry", Requires: []schema.GroupVersionKind{registry}, Kinds: all(registry)},
		{Name: "modelcatalog", Requires: []schema.GroupVersionKind{catalog}, Kinds: all(catalog)},
		{Name: "modelmesh", Requires: []schema.GroupVersionKind{predictor}, Kinds: []Kind{
			{capability.ClusterServingRuntime, multiModel}, {capability.ServingRuntime, multiModel}, {GroupVersionKind: predictor},
			{capability.InferenceService, inMesh},
		}},
		{Name: "raycluster", Requires: []schema.GroupVersionKind{raycluster.GVK}, Kinds: all(raycluster.GVK)},
		{Name: "appwrapper", Requires: []schema.GroupVersionKind{wrapper}, Kinds: all(wrapper)},
	}
}

func all(kinds ...schema.GroupVersionKind) []Kind {
	out := make([]Kind, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, Kind{GroupVersionKind: k})
	}
	return out
}

// multiModel tells runtimes of ModelMesh from those of KServe.
func multiModel(u *unstructured.Unstructured) bool {
	multi, _, _ := unstructured.NestedBool(u.Object, "spec", "multiModel")
	return multi
}

// inMesh tells models of ModelMesh from those of KServe.
func inMesh(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[servingv1beta1.AnnotationDeploymentMode] == servingv1beta1.DeploymentModeModelMesh
}

// Names of the components.
func Names() []string {
	var out []string
	for _, c := range Components() {
		out = append(out, c.Name)
	}
	return out
}

// AllKinds are the kinds of all components.
func AllKinds() []Kind {
	var out []Kind
	for _, c := range Components() {
		out = append(out, c.Kinds...)
	}
	return out
}

// Owns tells whether a component looks after a kind.
func (c Component) Owns(kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.GroupKind() == kind })
}

// LookedAfter tells whether any component looks after a kind.
func LookedAfter(kind schema.GroupKind) bool {
	return slices.ContainsFunc(Components(), func(c Component) bool { return c.Owns(kind) })
}

// Missing are the kinds that a component waits for; none when it can start.
func (c Component) Missing(set served.Set) []string {
	var missing []string
	for _, kind := range c.Requires {
		if !set.Has(kind) {
			missing = append(missing, kind.Kind+"."+kind.Group+"/"+kind.Version)
		}
	}
	if c.Any && len(missing) < len(c.Requires) {
		return nil
	}
	return missing
}
