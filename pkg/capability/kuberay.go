package capability

import (
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// PlatformKubeRayConfiguration is the name of the MutatingWebhookConfiguration of the platform's KubeRay: that of Open Data Hub, or of
// OpenShift AI 3.0 or later. Tenants cannot create a MutatingWebhookConfiguration. Upstream KubeRay has no mutating webhook.
const PlatformKubeRayConfiguration = "kuberay-mutating-webhook-configuration"

const (
	platformKubeRayWebhook = "mraycluster.kb.io"
	platformKubeRayPath    = "/mutate-ray-io-v1-raycluster"
)

// platformKubeRay represents the platform's KubeRay in a Set.
var platformKubeRay = admissionregistrationv1.SchemeGroupVersion.WithKind(PlatformKubeRayConfiguration)

var mutatingConfigurations = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")

// IsPlatformKubeRay reports whether a MutatingWebhookConfiguration, which may be nil, belongs to the platform's KubeRay.
func IsPlatformKubeRay(configuration *unstructured.Unstructured) bool {
	return configuration != nil && configuration.GetName() == PlatformKubeRayConfiguration &&
		slices.ContainsFunc(nested.List(configuration.Object, "webhooks"), func(webhook any) bool {
			path := nested.String(webhook, "clientConfig", "service", "path")
			if parsed, err := url.Parse(nested.String(webhook, "clientConfig", "url")); err == nil && path == "" {
				path = parsed.Path
			}
			return nested.String(webhook, "name") == platformKubeRayWebhook && path == platformKubeRayPath
		})
}

// newPlatformKubeRay returns a watcher of the presence of the platform's KubeRay. KubeRay counts as absent without the permission, or if no
// component needs it.
func newPlatformKubeRay(o Options) *singleton.Value[bool] {
	if o.KubeRay == nil {
		return &singleton.Value[bool]{}
	}
	v := singleton.NewValue(singleton.Options{
		Client: o.KubeRay.Resource(mutatingConfigurations), Resource: mutatingConfigurations.GroupResource(), Name: PlatformKubeRayConfiguration,
		Clock: o.Clock, Log: o.Log,
	}, singleton.Absent, IsPlatformKubeRay)
	v.SetServed(true)
	return v
}
