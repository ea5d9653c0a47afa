package modelmesh

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ValidatePath is the path of the webhook. Configurations in clusters call it.
const ValidatePath = "/validate-serving-modelmesh-io-v1alpha1-servingruntime"

// ValidatingConfiguration is the object that leads to the webhook. It has the name of the one that it replaces.
const ValidatingConfiguration = "modelmesh-servingruntime.serving.kserve.io"

// Register adds the webhook to the server of the manager. While the component is switched off it lets everything pass, with a
// warning.
func Register(mgr ctrl.Manager, enabled bool, serverTypes ServerTypes) {
	var handler admission.Handler = idle{}
	if enabled {
		handler = &validator{serverTypes}
	}
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}
