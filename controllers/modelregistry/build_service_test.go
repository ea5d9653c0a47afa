package modelregistry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

func noDomain(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Domain = "" }

// [modelregistry-38] [modelregistry-41] Only what exists is published. [D22]
func TestAddresses(t *testing.T) {
	inside := []string{"team-a.lab-registries.svc.cluster.local", "team-a.lab-registries", "team-a"}
	const (
		route  = "team-a-rest.apps.example.com"
		public = "gateway.example.com/model-registry/team-a"
	)
	withScheme := with(gateway, func(in *Inputs) { in.Gateway.Domain = "https://gateway.example.com" })
	for name, c := range map[string]struct {
		m       *v1beta1.ModelRegistry
		in      Inputs
		hosts   []string // before those inside
		address string
	}{
		"plain":                              {registry(), plain, nil, ""},
		"plain with a proxy":                 {registry(proxied), plain, nil, ""},
		"plain with a proxy and no domain":   {registry(proxied, noDomain), plain, nil, ""},
		"plain with a domain of the user":    {registry(proxied), with(plain, func(in *Inputs) { in.NamedDomain = true }), []string{route}, route + ":443"},
		"OpenShift without a proxy":          {registry(), openshift, nil, ""},
		"OpenShift":                          {registry(proxied), openshift, []string{route}, route + ":443"},
		"OpenShift with another port":        {registry(proxied, customised), openshift, []string{"team-a-rest.models.example.com"}, "team-a-rest.models.example.com:8443"},
		"OpenShift without a Route":          {registry(proxied, unrouted), openshift, nil, ""},
		"OpenShift whose domain nobody told": {registry(proxied, noDomain), openshift, nil, ""},
		"gateway":                            {registry(proxied), gateway, []string{public, route}, public},
		"gateway, as its setting stands":     {registry(proxied), withScheme, []string{"https://" + public, route}, "https://" + public},
		"gateway without a Route":            {registry(proxied, unrouted), gateway, []string{public}, public},
		"gateway without a proxy":            {registry(), gateway, []string{public}, ""},
		"gateway whose API is not served":    {registry(proxied), with(gateway, func(in *Inputs) { in.HTTPRoutes = false }), []string{route}, route + ":443"},
		"gateway on plain Kubernetes":        {registry(proxied), with(gateway, func(in *Inputs) { in.OpenShift = false }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append(c.hosts, inside...), hosts(c.m, c.in)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			annotations := typed[corev1.Service](t, built(t, c.m, c.in), "Service", "team-a").Annotations
			if got, found := annotations["routing.opendatahub.io/external-address-rest"]; got != c.address || found != (c.address != "") {
				t.Errorf("address %q, want %q", got, c.address)
			}
		})
	}
}

func TestServiceAnnotations(t *testing.T) {
	const cert = "service.beta.openshift.io/serving-cert-secret-name"
	described := registry()
	described.Annotations = map[string]string{
		"openshift.io/display-name": "Team A", "openshift.io/description": "", "example.com/note": "not copied",
	}
	for name, c := range map[string]struct {
		m    *v1beta1.ModelRegistry
		in   Inputs
		want map[string]string
	}{
		"none":                           {registry(), openshift, nil},
		"a certificate of the platform":  {registry(proxied, unrouted), openshift, map[string]string{cert: "team-a-kube-rbac-proxy"}},
		"[modelregistry-31] a given one": {registry(proxied, unrouted), with(openshift, func(in *Inputs) { in.ServingCertificate = false }), nil},
		"[modelregistry-25] descriptions": {described, openshift, map[string]string{
			"openshift.io/display-name": "Team A", "openshift.io/description": "",
		}},
	} {
		got := typed[corev1.Service](t, built(t, c.m, c.in), "Service", "team-a").Annotations
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// [modelregistry-28] One port: that of the proxy, or else that of the server.
func TestServicePort(t *testing.T) {
	https, http := "https", "http"
	for name, c := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want corev1.ServicePort
	}{
		"proxy":              {registry(proxied), corev1.ServicePort{Name: "https-api", Port: 8443, TargetPort: intstr.FromInt32(8443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
		"proxy, other port":  {registry(proxied, customised), corev1.ServicePort{Name: "https-api", Port: 9443, TargetPort: intstr.FromInt32(9443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
		"server":             {registry(), corev1.ServicePort{Name: "http-api", Port: 8080, TargetPort: intstr.FromInt32(8080), AppProtocol: &http, Protocol: corev1.ProtocolTCP}},
		"server, other port": {registry(everywhere), corev1.ServicePort{Name: "http-api", Port: 9090, TargetPort: intstr.FromInt32(9090), AppProtocol: &http, Protocol: corev1.ProtocolTCP}},
		"[D31] no number": {registry(proxied, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Port = nil }),
			corev1.ServicePort{Name: "https-api", Port: 8443, TargetPort: intstr.FromInt32(8443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
	} {
		service := typed[corev1.Service](t, built(t, c.m, plain), "Service", "team-a")
		if diff := cmp.Diff([]corev1.ServicePort{c.want}, service.Spec.Ports); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(selector(c.m), service.Spec.Selector); diff != "" {
			t.Errorf("%s: selector (-want +got):\n%s", name, diff)
		}
	}
}
