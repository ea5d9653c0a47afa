package modelmesh

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// ValidatePath is the path of the webhook. Configurations in clusters call it.
const ValidatePath = "/validate-serving-modelmesh-io-v1alpha1-servingruntime"

// ValidatingConfiguration is the object that leads to the webhook. It has the name of the one that it replaces.
const ValidatingConfiguration = "modelmesh-servingruntime.serving.kserve.io"

// Register adds the webhook to the server of the manager. While the component is switched off only the author is judged, with a
// warning.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, serverTypes ServerTypes) {
	var next admission.Handler = off
	if enabled {
		next = &validator{serverTypes}
	}
	handler := guards.Before(next, v1alpha1.GroupVersion.WithKind("ServingRuntime").GroupKind(), usesOf)
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}
