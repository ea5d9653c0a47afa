package authproxy

import (
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

func TestServiceAccountName(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		mode       string
		served     capability.Set
		want       string
	}{
		"OpenShift":                 {"", meshsettings.AuthProxyAuto, openShift, "modelmesh-serving-sa"},
		"OpenShift without sidecar": {"", meshsettings.AuthProxyNever, openShift, "modelmesh-serving-sa"},
		"Kubernetes":                {"", meshsettings.AuthProxyAuto, plain, ""},
		"Kubernetes with a sidecar": {"", meshsettings.AuthProxyAlways, plain, "modelmesh-serving-sa"},
		"configured":                {"runner", meshsettings.AuthProxyAuto, openShift, "runner"},
		"configured, on Kubernetes": {"runner", meshsettings.AuthProxyAuto, plain, "runner"},
	} {
		s := meshsettings.Default()
		s.ServiceAccountName, s.AuthProxy.Mode = c.configured, c.mode
		if got := ServiceAccountName(s, c.served); got != c.want {
			t.Errorf("%s: account %q, want %q", name, got, c.want)
		}
	}
}
