package raycluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// The paths of the webhooks. Configurations in clusters call them.
const (
	MutatePath   = "/mutate-ray-io-v1-raycluster"
	ValidatePath = "/validate-ray-io-v1-raycluster"
)

// The configuration objects. They have the names of those which they replace. Kueue must see the finished pod templates,
// and configurations are called in the order of their names.
const (
	MutatingConfiguration   = "codeflare-operator-mutating-webhook-configuration"
	ValidatingConfiguration = "codeflare-operator-validating-webhook-configuration"
)

// Options say where the settings come from. The functions are called with every request.
type Options struct {
	// Settings are those of the component. While they cannot be read every request is refused.
	Settings func(context.Context) (config.RayCluster, error)
	// Served are the kinds that the cluster serves.
	Served func() capability.Set
	// Domain is that under which the cluster publishes, as far as the cluster itself names it; empty while it is not known.
	Domain func() string
	// Version of the program.
	Version string
}

// Register adds the webhooks to the server of the manager. While the component is switched off they let pass what does not name
// anything of the manager, with a warning.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, o Options) {
	server := mgr.GetWebhookServer()
	var mutating, validating admission.Handler = disabled, disabled
	if enabled {
		mutating, validating = &defaulter{o.settings}, &validator{o.settings}
	}
	server.Register(MutatePath, &admission.Webhook{Handler: mutating})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.OfManager().Before(validating, raycluster.GVK.GroupKind(), referencesOf)})
}

// usesOf lists what a cluster names. Its pods are made by KubeRay, not by the manager.
func referencesOf(_ author.Rules, raw []byte, namespace string) (author.References, error) {
	cluster, err := parseCluster(raw, namespace)
	u := author.References{Namespace: namespace}
	if err == nil {
		u.AddReferences(cluster.Object(), nil)
	}
	return u, err
}

func (o Options) settings(ctx context.Context) (Settings, error) {
	c, err := o.Settings(ctx)
	if err != nil {
		return Settings{}, fmt.Errorf("the settings of the component raycluster: %w", err)
	}
	return SettingsOf(c, o.Served(), o.Domain(), o.Version), nil
}

// SettingsOf joins the settings of the component with what is known of the cluster: what it serves, the domain under which it
// publishes, "" while that is unknown, and the version of the program.
func SettingsOf(c config.RayCluster, served capability.Set, domain, version string) Settings {
	c = c.On(served.OpenShift())
	return Settings{RayCluster: c, Platform: raycluster.PlatformOf(served), Domain: clusterdomain.Prefer(c.IngressDomain, domain), Version: version}
}
