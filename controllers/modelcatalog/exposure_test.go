package modelcatalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// One setting selects the exposure on plain Kubernetes; by default, nothing is exposed.
func TestExposure(t *testing.T) {
	for kind, want := range map[string][]string{
		config.ExposeAuto:    nil,
		config.ExposeGateway: {"ConfigMap/model-catalog-ca", "BackendTLSPolicy/model-catalog-ca", "ReferenceGrant/allow-gateway-model-catalog", "HTTPRoute/model-catalog"},
		config.ExposeIngress: {"Ingress/model-catalog-https"},
	} {
		t.Run(kind, func(t *testing.T) {
			in := kubernetesInputs()
			behindGateway(&in)
			in.Served, in.Authority = capability.NewSet(capability.HTTPRoute, capability.ReferenceGrant, capability.BackendTLSPolicy), []byte("PEM")
			in.Exposure = config.Exposure{Kind: kind, IngressDomain: "apps.example.org"}
			var got []string
			for _, o := range buildObjects(t, newCatalog(), in) {
				if slices.Contains([]string{"HTTPRoute", "ReferenceGrant", "Ingress", "BackendTLSPolicy"}, o.GetKind()) || o.GetName() == resources.AuthorityName && o.GetKind() == "ConfigMap" {
					got = append(got, o.GetKind()+"/"+o.GetName())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
