package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func noDomain(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Domain = "" }

// [modelregistry-38] [modelregistry-41] Only existing addresses are published. [D22]
func TestHostsOmitObjectsThatAreNotBuilt(t *testing.T) {
	inside := []string{"team-a.lab-registries.svc.cluster.local", "team-a.lab-registries", "team-a"}
	const (
		route  = "team-a-rest.apps.example.com"
		public = "gateway.example.com/model-registry/team-a"
	)
	withScheme := with(gateway, func(in *Inputs) { in.Gateway.Domain = "https://gateway.example.com" })
	for name, test := range map[string]struct {
		m       *v1beta1.ModelRegistry
		in      Inputs
		hosts   []string // without those inside the cluster
		address string
	}{
		"plain":                            {registrytest.Registry(), plain, nil, ""},
		"plain with a proxy":               {registrytest.Registry(registrytest.AddProxy), plain, nil, ""},
		"plain with a proxy and no domain": {registrytest.Registry(registrytest.AddProxy, noDomain), plain, nil, ""},
		"plain with a domain of the user":  {registrytest.Registry(registrytest.AddProxy), with(plain, func(in *Inputs) { in.HasCustomDomain = true }), []string{route}, route + ":443"},
		"OpenShift without a proxy":        {registrytest.Registry(), openshift, nil, ""},
		"OpenShift":                        {registrytest.Registry(registrytest.AddProxy), openshift, []string{route}, route + ":443"},
		"OpenShift with another port":      {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), openshift, []string{"team-a-rest.models.example.com"}, "team-a-rest.models.example.com:8443"},
		"OpenShift without a Route":        {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift, nil, ""},
		"OpenShift without a known domain": {registrytest.Registry(registrytest.AddProxy, noDomain), openshift, nil, ""},
		"gateway":                          {registrytest.Registry(registrytest.AddProxy), gateway, []string{public, route}, public},
		"gateway domain with scheme":       {registrytest.Registry(registrytest.AddProxy), withScheme, []string{"https://" + public, route}, "https://" + public},
		"gateway without a Route":          {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), gateway, []string{public}, public},
		"gateway without a proxy":          {registrytest.Registry(), gateway, []string{public}, ""},
		"gateway whose API is not served":  {registrytest.Registry(registrytest.AddProxy), with(gateway, func(in *Inputs) { unserve(in, capability.HTTPRoute) }), []string{route}, route + ":443"},
		"gateway on plain Kubernetes":      {registrytest.Registry(registrytest.AddProxy), with(gateway, func(in *Inputs) { unserve(in, capability.Route) }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append(test.hosts, inside...), Hosts(test.m, test.in)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			annotations := decodeObject[corev1.Service](t, buildObjects(t, test.m, test.in), "Service", "team-a").Annotations
			if got, found := annotations["routing.opendatahub.io/external-address-rest"]; got != test.address || found != (test.address != "") {
				t.Errorf("address %q, want %q", got, test.address)
			}
		})
	}
}

func TestServiceAnnotations(t *testing.T) {
	const cert = "service.beta.openshift.io/serving-cert-secret-name"
	described := registrytest.Registry()
	described.Annotations = map[string]string{
		"openshift.io/display-name": "Team A", "openshift.io/description": "", "example.com/note": "not copied",
	}
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		in   Inputs
		want map[string]string
	}{
		"no proxy":                    {registrytest.Registry(), openshift, nil},
		"certificate of the platform": {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift, map[string]string{cert: "team-a-kube-rbac-proxy"}},
		"[modelregistry-31] certificate of the spec": {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), with(openshift, func(in *Inputs) { in.RequestCertificate = false }), nil},
		"[modelregistry-25] descriptions": {described, openshift, map[string]string{
			"openshift.io/display-name": "Team A", "openshift.io/description": "",
		}},
	} {
		got := decodeObject[corev1.Service](t, buildObjects(t, test.m, test.in), "Service", "team-a").Annotations
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// [modelregistry-28] The Service has one port: that of the proxy, or else that of the server.
func TestServicePort(t *testing.T) {
	https, http := "https", "http"
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want corev1.ServicePort
	}{
		"proxy":              {registrytest.Registry(registrytest.AddProxy), corev1.ServicePort{Name: "https-api", Port: 8443, TargetPort: intstr.FromInt32(8443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
		"proxy, other port":  {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), corev1.ServicePort{Name: "https-api", Port: 9443, TargetPort: intstr.FromInt32(9443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
		"server":             {registrytest.Registry(), corev1.ServicePort{Name: "http-api", Port: 8080, TargetPort: intstr.FromInt32(8080), AppProtocol: &http, Protocol: corev1.ProtocolTCP}},
		"server, other port": {registrytest.Registry(registrytest.SetOptionalFields), corev1.ServicePort{Name: "http-api", Port: 9090, TargetPort: intstr.FromInt32(9090), AppProtocol: &http, Protocol: corev1.ProtocolTCP}},
		"[D31] no port in the spec": {registrytest.Registry(registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Port = nil }),
			corev1.ServicePort{Name: "https-api", Port: 8443, TargetPort: intstr.FromInt32(8443), AppProtocol: &https, Protocol: corev1.ProtocolTCP}},
	} {
		service := decodeObject[corev1.Service](t, buildObjects(t, test.m, plain), "Service", "team-a")
		if diff := cmp.Diff([]corev1.ServicePort{test.want}, service.Spec.Ports); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(ServerSelector(test.m), service.Spec.Selector); diff != "" {
			t.Errorf("%s: selector (-want +got):\n%s", name, diff)
		}
	}
}
