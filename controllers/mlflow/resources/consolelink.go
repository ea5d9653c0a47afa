package resources

import (
	"encoding/base64"

	consolev1 "github.com/openshift/api/console/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// consoleLink puts the server into the application menu of the OpenShift console.
func consoleLink(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	return resources.Typed(capability.ConsoleLink, &consolev1.ConsoleLink{
		ObjectMeta: metav1.ObjectMeta{Name: NameOf(m), Labels: map[string]string{LabelApp: BaseName}},
		Spec: consolev1.ConsoleLinkSpec{
			Link:     consolev1.Link{Text: "MLflow", Href: publicURL(m, in)},
			Location: consolev1.ApplicationMenu,
			ApplicationMenu: &consolev1.ApplicationMenuSpec{
				Section:  in.SectionTitle,
				ImageURL: "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon)),
			},
		},
	})
}

// icon is a flask with a liquid in it, drawn for the console menu.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">` +
	`<path fill="#0194e2" fill-rule="evenodd" d="M11 3h10v3h-1.5v6.6l7 12A3 3 0 0 1 23.9 29H8.1a3 3 0 0 1-2.6-4.4l7-12V6H11z` +
	`M15 6v7.3L11.6 19h8.8L17 13.3V6z"/></svg>`
