package capability

import (
	"net/url"
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// PlatformKubeRayConfiguration is the MutatingWebhookConfiguration of the KubeRay of Open Data Hub and OpenShift AI since 3.0, which secures
// all Ray clusters if Routes are served. Tenants cannot create one. Upstream KubeRay has no mutating webhook.
const PlatformKubeRayConfiguration = "kuberay-mutating-webhook-configuration"

const (
	platformKubeRayWebhook = "mraycluster.kb.io"
	platformKubeRayPath    = "/mutate-ray-io-v1-raycluster"
)

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

// platformKubeRay watches the KubeRay of the platform. A nil one is never present.
type platformKubeRay struct {
	*singleton.Watcher
	present atomic.Pointer[bool] // nil until it is known
	changed chan struct{}
}

// newPlatformKubeRay returns a watcher of the webhook configuration. Without the permission KubeRay counts as absent.
func newPlatformKubeRay(options Options) *platformKubeRay {
	if options.KubeRay == nil {
		return nil
	}
	p := &platformKubeRay{changed: make(chan struct{}, 1)}
	p.Watcher = singleton.New(singleton.Options{
		Client: options.KubeRay.Resource(mutatingConfigurations), Resource: mutatingConfigurations.GroupResource(), Name: PlatformKubeRayConfiguration,
		Clock: options.Clock, Log: options.Log, OnUnavailable: func() { p.set(false) },
		OnUpdate: func(configuration *unstructured.Unstructured) { p.set(IsPlatformKubeRay(configuration)) },
	})
	p.SetServed(true)
	return p
}

func (p *platformKubeRay) set(present bool) {
	if previous := p.present.Swap(&present); previous != nil && *previous == present {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default: // an earlier change is still unread
	}
}

// changes returns the channel of changes, nil for a nil platformKubeRay.
func (p *platformKubeRay) changes() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.changed
}

// current returns whether the platform's KubeRay is present, and whether that is known.
func (p *platformKubeRay) current() (present, known bool) {
	if p == nil {
		return false, true
	}
	found := p.present.Load()
	return found != nil && *found, found != nil
}
