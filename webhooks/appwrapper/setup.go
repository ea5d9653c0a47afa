package appwrapper

import (
	"context"
	"fmt"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The paths of the webhooks. Configurations in clusters call them.
const (
	MutatePath   = "/mutate-workload-codeflare-dev-v1beta2-appwrapper"
	ValidatePath = "/validate-workload-codeflare-dev-v1beta2-appwrapper"
)

// The configuration objects that are shipped with the program. Kueue must see the default queue, and configurations are
// called in the order of their names.
const (
	MutatingConfiguration   = "appwrapper-mutating-webhook-configuration"
	ValidatingConfiguration = "appwrapper-validating-webhook-configuration"
)

// Register adds the webhooks to the server of the manager. While the component is switched off they let everything pass,
// with a warning. The settings are asked for with every creation.
func Register(mgr ctrl.Manager, enabled bool, settings func(context.Context) (Settings, error)) error {
	server := mgr.GetWebhookServer()
	if !enabled {
		server.Register(MutatePath, &admission.Webhook{Handler: idle{}})
		server.Register(ValidatePath, &admission.Webhook{Handler: idle{}})
		return nil
	}
	reviews, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of access reviews: %w", err)
	}
	v := &validator{settings: settings, kinds: mgr.GetRESTMapper(), may: reviewer(reviews.SubjectAccessReviews())}
	server.Register(MutatePath, &admission.Webhook{Handler: &defaulter{settings}})
	server.Register(ValidatePath, &admission.Webhook{Handler: v})
	return nil
}
