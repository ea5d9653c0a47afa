package modelmesh

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/oauthproxy"
)

// proxyFor returns the sidecar that guards REST in a namespace, or nil for none.
func proxyFor(namespace string, s meshsettings.Settings, served capability.Set) *authproxy.Proxy {
	return authproxy.Decide(authproxy.FromSettings(s, namespace), served)
}

// originalProxy is the sidecar that the original put into a live pod template; nil where there is none.
func originalProxy(namespace string, live *corev1.PodTemplateSpec) *authproxy.Proxy {
	for i := range live.Spec.Containers {
		if c := &live.Spec.Containers[i]; c.Name == oauthproxy.ContainerName {
			return authproxy.Original(namespace, live.Spec.ServiceAccountName, c.Image)
		}
	}
	return nil
}
