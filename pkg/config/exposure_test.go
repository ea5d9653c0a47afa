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
		"no setting":  {"exposure: {}", Exposure{Kind: ExposeAuto}},
		"the Gateway": {"exposure: {kind: gateway}", Exposure{Kind: ExposeGateway}},
		"an Ingress": {"exposure: {kind: ingress, ingressClass: nginx, ingressDomain: apps.example.org, ingressAnnotations: [cert-manager.io/cluster-issuer=ours, " +
			"'nginx.ingress.kubernetes.io/whitelist-source-range=10.0.0.0/8,192.168.0.0/16', a=b=c]}", Exposure{
			Kind: ExposeIngress, IngressClass: "nginx", IngressDomain: "apps.example.org", IngressAnnotations: map[string]string{
				"cert-manager.io/cluster-issuer": "ours", "nginx.ingress.kubernetes.io/whitelist-source-range": "10.0.0.0/8,192.168.0.0/16", "a": "b=c",
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (given{}).withFile(c.file).load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Exposure); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got.ModelRegistry.Exposure); diff != "" {
				t.Errorf("registries follow something else:\n%s", diff)
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
		if _, err := (given{}).withFile(file).load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
