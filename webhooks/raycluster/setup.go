package raycluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// The paths of the webhooks. Webhook configurations of existing installations refer to them.
const (
	MutatePath   = "/mutate-ray-io-v1-raycluster"
	ValidatePath = "/validate-ray-io-v1-raycluster"
)

// The webhook configurations. They have the names that the CodeFlare operator uses, and replace its configurations. Kueue must see the final
// pod templates, and configurations are called in the order of their names.
const (
	MutatingConfiguration   = "codeflare-operator-mutating-webhook-configuration"
	ValidatingConfiguration = "codeflare-operator-validating-webhook-configuration"
)

// Options are the dependencies of the webhooks. The functions are called for each request.
type Options struct {
	// Settings returns the settings of the component. Requests are rejected while it fails.
	Settings func(context.Context) (config.RayCluster, error)
	// Served returns the kinds that the cluster serves.
	Served func() capability.Set
	// Domain returns the ingress domain of the cluster, or "" if unknown.
	Domain  func() string
	Version string
}

// Register adds the webhooks to the server of the manager. While the component is disabled, they warn, and deny only RayClusters that refer
// to objects of the manager.
func Register(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, o Options) {
	server := mgr.GetWebhookServer()
	validating := disabledHandler.Unless(enabled, &validator{o.settings})
	server.Register(MutatePath, &admission.Webhook{Handler: disabledHandler.Unless(enabled, &defaulter{o.settings})})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.ForManagerOnly().Wrap(validating, raycluster.GVK.GroupKind(), referencesOf)})
}

// referencesOf returns the references of a RayCluster. KubeRay creates its pods, not the manager.
func referencesOf(_ pkgadmission.Rules, raw []byte, namespace string) (pkgadmission.References, error) {
	cluster, err := parseCluster(raw, namespace)
	references := pkgadmission.References{Namespace: namespace}
	if err == nil {
		references.AddReferences(cluster.Object(), nil)
	}
	return references, err
}

func (o Options) settings(ctx context.Context) (Settings, error) {
	c, err := o.Settings(ctx)
	if err != nil {
		return Settings{}, fmt.Errorf("the settings of the component raycluster: %w", err)
	}
	return SettingsOf(c, o.Served(), o.Domain(), o.Version), nil
}

// SettingsOf combines the settings of the component with the served kinds, the ingress domain ("" if unknown) and the version of the program.
func SettingsOf(c config.RayCluster, served capability.Set, domain, version string) Settings {
	c = c.ForPlatform(served.IsOpenShift())
	return Settings{RayCluster: c, Platform: raycluster.PlatformOf(served), Domain: clusterdomain.Prefer(c.IngressDomain, domain), Version: version}
}
