package authproxy

import (
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
)

// FromSettings returns what the settings of a namespace say about the sidecar.
func FromSettings(s meshsettings.Settings, namespace string) Wishes {
	w := Wishes{
		Mode: Mode(s.AuthProxy.Mode), OAuthImage: s.AuthProxy.Image.Reference(), RBACImage: s.AuthProxy.RBACImage.Reference(),
		Resources: s.AuthProxy.Resources, ExtraArgs: s.AuthProxy.ExtraArgs,
		Namespace: namespace, Service: s.ServiceName, ServiceAccount: s.ServiceAccountName,
		TLSSecret: s.TLS.SecretName, ClientAuth: s.TLS.ClientAuth,
	}
	if s.RESTProxy.Enabled {
		w.RESTPort = s.RESTProxy.Port
	}
	return w
}

// AccountOf is the service account of runtime pods: the one that the settings name, else [Account] where the platform or a sidecar
// relies on it, else "" for the account that every namespace has.
func AccountOf(s meshsettings.Settings, served capability.Set) string {
	if s.ServiceAccountName == "" && (served.OpenShift() || Decide(FromSettings(s, ""), served) != nil) {
		return Account
	}
	return s.ServiceAccountName
}
