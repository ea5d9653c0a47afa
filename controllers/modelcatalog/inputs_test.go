package modelcatalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

func TestBuildInputs(t *testing.T) {
	p := servers.Platform{ModelRegistry: config.ModelRegistry{Gateway: config.RegistryGateway{Domain: "g"}, SkipCatalogDatabase: true}}
	p.RouterDomain, p.Served = "found.example.com", capability.NewSet(capability.Route, capability.HTTPRoute)
	in := buildInputs(&p)
	if !in.IsOpenShift() || !in.Served.Has(capability.HTTPRoute) || in.Served.Has(capability.ReferenceGrant) || in.Domain != "found.example.com" || !in.SkipDatabase || !in.ViaGateway() {
		t.Errorf("got %+v, want OpenShift with Gateway, the domain of the routers and no database", in)
	}
	p.DefaultDomain, p.Served = "set.example.com", capability.NewSet()
	if in := buildInputs(&p); in.IsOpenShift() || in.Domain != "set.example.com" || in.ViaGateway() {
		t.Errorf("got %+v, want no OpenShift, no Gateway and the configured domain", in)
	}
	withDomain, onKubernetes := servers.Platform{ModelRegistry: p.ModelRegistry, Served: capability.NewSet(capability.OpenShiftIngress)}, servers.Platform{}
	if withDomain.WaitForDomain() != nil || onKubernetes.WaitForDomain() != nil {
		t.Error("WaitForDomain waits although the domain is set or not needed")
	}
}

// Metadata of the catalog's Secrets is read from separate caches, and everything else from the cache of the manager.
func TestDelegatingClient(t *testing.T) {
	env := newTestEnv(t, &corev1.Secret{ObjectMeta: nameMeta("other")}, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)})
	delegating := env.r.extraCaches.delegatingClient(newTestEnv(t).server) // only the extra caches contain objects
	for name, test := range map[string]struct {
		object client.Object
		found  bool
	}{resources.DatabaseName: {objectmeta.New(servers.Secret), true}, "other": {objectmeta.New(servers.Secret), false}, resources.CertificateSecret: {&corev1.Secret{}, false}} {
		err := delegating.Get(t.Context(), client.ObjectKey{Namespace: "lab-registries", Name: name}, test.object)
		if (err == nil) != test.found {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
}
