package resources

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// consoleLink puts the server into the application menu of the OpenShift console.
func consoleLink(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	return resources.Literal("console.openshift.io/v1", "ConsoleLink", NameOf(m), "", map[string]string{LabelApp: BaseName}, map[string]any{"spec": map[string]any{
		"text":     "MLflow",
		"href":     publicURL(m, in),
		"location": "ApplicationMenu",
		"applicationMenu": map[string]any{
			"section":  in.SectionTitle,
			"imageURL": "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon)),
		},
	}})
}

// icon is a flask with a liquid in it, drawn for the console menu.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">` +
	`<path fill="#0194e2" fill-rule="evenodd" d="M11 3h10v3h-1.5v6.6l7 12A3 3 0 0 1 23.9 29H8.1a3 3 0 0 1-2.6-4.4l7-12V6H11z` +
	`M15 6v7.3L11.6 19h8.8L17 13.3V6z"/></svg>`
