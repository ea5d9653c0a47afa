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

// PlatformKubeRayConfiguration is the MutatingWebhookConfiguration of the KubeRay of Open Data Hub and OpenShift AI since 3.0. No tenant can
// write one. Where Routes are served, this KubeRay secures all Ray clusters by itself. The KubeRay of its community has no mutating webhook.
const PlatformKubeRayConfiguration = "kuberay-mutating-webhook-configuration"

const platformKubeRayWebhook, platformKubeRayPath = "mraycluster.kb.io", "/mutate-ray-io-v1-raycluster"

var mutatingConfigurations = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")

// IsPlatformKubeRay reports whether a MutatingWebhookConfiguration, nil for none, is the one of the platform's KubeRay.
func IsPlatformKubeRay(configuration *unstructured.Unstructured) bool {
	return configuration != nil && configuration.GetName() == PlatformKubeRayConfiguration &&
		slices.ContainsFunc(nested.List(configuration.Object, "webhooks"), func(webhook any) bool {
			called := nested.Text(webhook, "clientConfig", "service", "path")
			if direct, err := url.Parse(nested.Text(webhook, "clientConfig", "url")); err == nil && called == "" {
				called = direct.Path
			}
			return nested.Text(webhook, "name") == platformKubeRayWebhook && called == platformKubeRayPath
		})
}

// platformKubeRay follows the KubeRay of the platform. A nil one knows that there is none.
type platformKubeRay struct {
	*singleton.Watcher
	present atomic.Pointer[bool] // nil until it is known
	changed chan struct{}
}

// newPlatformKubeRay follows it from the start: the API of webhooks is served by every cluster. Without the permission there is none.
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

func (p *platformKubeRay) set(there bool) {
	if before := p.present.Swap(&there); before != nil && *before == there {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default: // the change before has not been seen
	}
}

// changes is nil for one that is not followed.
func (p *platformKubeRay) changes() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.changed
}

// current returns whether the platform's KubeRay is there, and whether that is known.
func (p *platformKubeRay) current() (there, known bool) {
	if p == nil {
		return false, true
	}
	found := p.present.Load()
	return found != nil && *found, found != nil
}
