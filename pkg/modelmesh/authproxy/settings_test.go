package authproxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
)

func TestFromSettings(t *testing.T) {
	s := meshsettings.Default()
	got := FromSettings(s, "ns")
	want := Wishes{
		Mode:       Auto,
		OAuthImage: "registry.redhat.io/openshift4/ose-oauth-proxy-rhel9@sha256:d3056b35d9a205b9f2c48d924f199c5ac23904eb18d526e4bff229e7c7181415",
		RBACImage:  s.AuthProxy.RBACImage.Reference(), Resources: wishes().Resources, Namespace: "ns", Service: "modelmesh-serving", RESTPort: 8008,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	s.ServiceName, s.ServiceAccountName, s.RESTProxy.Port = "mesh", "runner", 9009
	s.TLS = meshsettings.TLS{SecretName: "tls", ClientAuth: "require"}
	s.AuthProxy.Mode, s.AuthProxy.ExtraArgs = meshsettings.AuthProxyAlways, []string{"--a"}
	want.Mode, want.ExtraArgs, want.Service, want.ServiceAccount, want.RESTPort, want.TLSSecret, want.ClientAuth =
		Always, []string{"--a"}, "mesh", "runner", 9009, "tls", "require"
	if diff := cmp.Diff(want, FromSettings(s, "ns")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.RESTProxy.Enabled = false
	if got := FromSettings(s, "ns").RESTPort; got != 0 {
		t.Errorf("port %d without a REST proxy", got)
	}
}

func TestAccountOf(t *testing.T) {
	for name, c := range map[string]struct {
		named  string
		mode   string
		served capability.Set
		want   string
	}{
		"OpenShift":                  {"", meshsettings.AuthProxyAuto, openShift, "modelmesh-serving-sa"},
		"OpenShift without sidecar":  {"", meshsettings.AuthProxyNever, openShift, "modelmesh-serving-sa"},
		"Kubernetes":                 {"", meshsettings.AuthProxyAuto, plain, ""},
		"Kubernetes with a sidecar":  {"", meshsettings.AuthProxyAlways, plain, "modelmesh-serving-sa"},
		"named":                      {"runner", meshsettings.AuthProxyAuto, openShift, "runner"},
		"named, on plain Kubernetes": {"runner", meshsettings.AuthProxyAuto, plain, "runner"},
	} {
		s := meshsettings.Default()
		s.ServiceAccountName, s.AuthProxy.Mode = c.named, c.mode
		if got := AccountOf(s, c.served); got != c.want {
			t.Errorf("%s: account %q, want %q", name, got, c.want)
		}
	}
}
