package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// One setting selects the exposure on plain Kubernetes; by default, nothing is exposed.
func TestExposure(t *testing.T) {
	gateway := config.RegistryGateway{Domain: "gateway.example.com", Name: "front", Namespace: "edge", RouteNamespace: "routes"}
	served := Inputs{RequestCertificate: true, Publishing: servers.Publishing{
		Served:  capability.NewSet(capability.HTTPRoute, capability.ReferenceGrant, capability.BackendTLSPolicy),
		Gateway: gateway, Authority: []byte("PEM"),
	}}
	inputsFor := func(kind string, changes ...func(*Inputs)) Inputs {
		in := served
		in.Exposure = config.Exposure{Kind: kind, IngressDomain: "apps.example.org"}
		for _, change := range changes {
			change(&in)
		}
		return in
	}
	proxied := []func(*v1beta1.ModelRegistrySpec){registrytest.AddProxy}
	inDomain := func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Domain = "apps.example.org" }
	for name, test := range map[string]struct {
		in      Inputs
		spec    []func(*v1beta1.ModelRegistrySpec)
		want    []string
		address string
	}{
		"auto": {inputsFor(config.ExposeAuto), proxied, nil, ""},
		"gateway": {inputsFor(config.ExposeGateway), proxied,
			[]string{"ConfigMap/demo-ca", "BackendTLSPolicy/demo-ca", "ReferenceGrant/allow-gateway-httproutes-demo", "HTTPRoute/model-registry-demo"}, "gateway.example.com/model-registry/demo"},
		"gateway without a domain": {inputsFor(config.ExposeGateway, func(in *Inputs) { in.Gateway.Domain = "" }), proxied, nil, ""},
		"gateway without a CA": {inputsFor(config.ExposeGateway, func(in *Inputs) { in.Authority = nil }), proxied,
			[]string{"ReferenceGrant/allow-gateway-httproutes-demo", "HTTPRoute/model-registry-demo"}, "gateway.example.com/model-registry/demo"},
		"ingress":                 {inputsFor(config.ExposeIngress), append(proxied, inDomain), []string{"Ingress/demo-https"}, "demo-rest.apps.example.org:443"},
		"ingress, route disabled": {inputsFor(config.ExposeIngress), append(proxied, inDomain, registrytest.DisableRoute), nil, ""},
		"ingress without a proxy": {inputsFor(config.ExposeIngress), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := registrytest.SetName(registrytest.Registry(test.spec...), "demo")
			desired, err := Build(m, test.in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range desired {
				key := o.Key()
				if slices.Contains([]string{"HTTPRoute", "ReferenceGrant", "Ingress", "BackendTLSPolicy"}, key.Kind) || key.Name == "demo-ca" {
					got = append(got, key.Kind+"/"+key.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if got := externalAddress(m, test.in); got != test.address {
				t.Errorf("got address %q, want %q", got, test.address)
			}
		})
	}
}
