package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExposure(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want Exposure
	}{
		"no setting": {"exposure: {}", Exposure{Kind: ExposeAuto}},
		"gateway":    {"exposure: {kind: gateway}", Exposure{Kind: ExposeGateway}},
		"ingress": {"exposure: {kind: ingress, ingressClass: nginx, ingressDomain: apps.example.org, ingressAnnotations: [cert-manager.io/cluster-issuer=own, " +
			"'nginx.ingress.kubernetes.io/whitelist-source-range=10.0.0.0/8,192.168.0.0/16', a=b=c]}", Exposure{
			Kind: ExposeIngress, IngressClass: "nginx", IngressDomain: "apps.example.org", IngressAnnotations: map[string]string{
				"cert-manager.io/cluster-issuer": "own", "nginx.ingress.kubernetes.io/whitelist-source-range": "10.0.0.0/8,192.168.0.0/16", "a": "b=c",
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (inputs{}).withFile(c.file).load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Exposure); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got.ModelRegistry.Exposure); diff != "" {
				t.Errorf("modelregistry exposure (-want +got):\n%s", diff)
			}
		})
	}
	for file, want := range map[string]string{
		"exposure: {kind: loudly}":                        "must be auto, gateway or ingress",
		"exposure: {kind: ingress}":                       "set --ingress-domain",
		"exposure: {ingressDomain: 'https://a'}":          "must be a domain",
		"exposure: {ingressAnnotations: [without value]}": "must be a list such as",
		"exposure: {ingressClass: Big}":                   "must be an object name",
	} {
		if _, err := (inputs{}).withFile(file).load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", file, err, want)
		}
	}
}

// Except on OpenShift, the exposure of all servers applies to Ray clusters. Their own settings of the Gateway and the domain, and publish
// gateway or none, take precedence.
func TestExposureOfRayClusters(t *testing.T) {
	const gateway, ingress = "exposure: {kind: gateway}\n", "exposure: {kind: ingress, ingressDomain: apps.example.org, ingressClass: edge}\n"
	type published struct{ Publish, Domain, Gateway, Class string }
	for name, c := range map[string]struct {
		file      string
		openShift bool
		want      published
	}{
		"no setting":                   {"exposure: {}", false, published{PublishAuto, "", "data-science-gateway", ""}},
		"OpenShift, gateway":           {gateway, true, published{PublishAuto, "", "data-science-gateway", ""}},
		"OpenShift, ingress":           {ingress, true, published{PublishAuto, "", "data-science-gateway", ""}},
		"gateway":                      {gateway, false, published{PublishGateway, "", "data-science-gateway", ""}},
		"gatewayName of registries":    {gateway + "modelregistry: {gatewayName: public}", false, published{PublishGateway, "", "public", ""}},
		"gatewayName of Ray":           {gateway + "modelregistry: {gatewayName: public}\nraycluster: {gatewayName: front}", false, published{PublishGateway, "", "front", ""}},
		"publish none":                 {gateway + "raycluster: {publish: none}", false, published{PublishNone, "", "data-science-gateway", ""}},
		"ingress":                      {ingress, false, published{PublishAuto, "apps.example.org", "data-science-gateway", "edge"}},
		"ingressDomain of Ray":         {ingress + "raycluster: {ingressDomain: ray.example.org}", false, published{PublishAuto, "ray.example.org", "data-science-gateway", "edge"}},
		"Ray by gateway, rest ingress": {ingress + "raycluster: {publish: gateway}", false, published{PublishGateway, "apps.example.org", "data-science-gateway", "edge"}},
	} {
		t.Run(name, func(t *testing.T) {
			ray, _, err := mustLoad(t, (inputs{}).withFile(c.file)).RayCluster(nil)
			if err != nil {
				t.Fatal(err)
			}
			ray = ray.ForPlatform(c.openShift)
			if diff := cmp.Diff(c.want, published{ray.Publish, ray.IngressDomain, ray.GatewayName, ray.Exposure.IngressClass}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
