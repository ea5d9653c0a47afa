package mlflow

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// consoleLink puts the server into the application menu of the OpenShift console.
func consoleLink(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	return resources.Literal("console.openshift.io/v1", "ConsoleLink", resourceName(m), "", map[string]string{labelApp: baseName}, map[string]any{"spec": map[string]any{
		"text":     "MLflow",
		"href":     publicURL(m, in),
		"location": "ApplicationMenu",
		"applicationMenu": map[string]any{
			"section":  in.SectionTitle,
			"imageURL": "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon)),
		},
	}})
}
