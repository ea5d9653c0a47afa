package mlflow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// Render returns what an MLflow would create in an empty cluster that serves the given APIs, and the Job that migrates
// its database first. Unknown fields are errors.
func Render(settings Settings, served capability.Set, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	m := &mlflowv1.MLflow{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, m, true); err != nil {
		return nil, fmt.Errorf("decoding MLflow %s: %w", object.GetName(), err)
	}
	desired, err := resources.Build(m, settings.Inputs(served))
	if err != nil {
		return nil, fmt.Errorf("building the objects of MLflow %s: %w", m.Name, err)
	}
	if m.Status.Version == "" {
		m.Generation = max(m.Generation, 1)
		desired.Add(resources.MigrationJob(m, settings.Inputs(served), ""))
	}
	return apply.Render(desired, ComponentName, m)
}
