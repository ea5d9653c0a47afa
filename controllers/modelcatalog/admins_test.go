package modelcatalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func TestInputs(t *testing.T) {
	s := Settings{ModelRegistry: config.ModelRegistry{Gateway: config.RegistryGateway{Domain: "g"}, SkipCatalogDatabase: true}}
	in := s.inputs(capability.NewSet(capability.Route, capability.HTTPRoute), "found.example.com")
	if !in.OpenShift || !in.HTTPRoutes || in.ReferenceGrants || in.Domain != "found.example.com" || !in.SkipDatabase || !in.GatewayMode() {
		t.Errorf("%+v", in)
	}
	s.DefaultDomain = "set.example.com"
	if in := s.inputs(capability.NewSet(), "found.example.com"); in.OpenShift || in.Domain != "set.example.com" || in.GatewayMode() {
		t.Errorf("%+v", in)
	}
	if !knowsDomain(s, capability.NewSet(capability.OpenShiftIngress), nil) || !knowsDomain(Settings{}, capability.NewSet(), nil) {
		t.Error("nothing is to be waited for")
	}
}

// Metadata of the two Secrets is read in their own caches, everything else is not.
func TestRoutedClient(t *testing.T) {
	b := newBench(t, &corev1.Secret{ObjectMeta: named("other")}, &corev1.Secret{ObjectMeta: named(resources.DatabaseName)})
	routed := b.r.side.routed(newBench(t).server) // what is found comes from the side caches
	for name, c := range map[string]struct {
		object client.Object
		found  bool
	}{resources.DatabaseName: {head(secretKind), true}, "other": {head(secretKind), false}, resources.CertificateSecret: {&corev1.Secret{}, false}} {
		err := routed.Get(t.Context(), client.ObjectKey{Namespace: "lab-registries", Name: name}, c.object)
		if (err == nil) != c.found {
			t.Errorf("%s: %v", name, err)
		}
	}
}
