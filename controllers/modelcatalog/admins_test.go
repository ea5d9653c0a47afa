package modelcatalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Groups are unknown until Auth has been read, and only news wake the controller.
func TestAdminsTellNews(t *testing.T) {
	served := capability.NewSet(capability.PlatformAuth)
	a := &admins{served: func() capability.Set { return served }, changes: make(chan event.GenericEvent, 1)}
	auth := func(groups ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": groups}}}
	}
	woken := func() bool {
		select {
		case <-a.changes:
			return true
		default:
			return false
		}
	}
	if _, known := a.now(); known {
		t.Error("known before it was read")
	}
	a.take(auth("early"))
	if woken() {
		t.Error("there is nobody to wake yet")
	}
	a.source(sample(), nil)
	for i, step := range []struct {
		auth  *unstructured.Unstructured
		wakes bool
		want  int
	}{{auth("a"), true, 1}, {auth("a"), false, 1}, {auth("a", "b"), true, 2}, {nil, true, 0}, {nil, false, 0}} {
		a.take(step.auth)
		groups, known := a.now()
		if woken() != step.wakes || !known || len(groups) != step.want {
			t.Errorf("step %d: groups %v, known %v", i, groups, known)
		}
	}
	a.take(auth("a"))
	a.take(auth("b")) // the first is not taken up yet and covers this one
	if !woken() || woken() {
		t.Error("one event covers both")
	}
	a.reset()
	if _, known := a.now(); known {
		t.Error("the API was gone and has not been read again")
	}
	served = capability.NewSet()
	if groups, known := a.now(); !known || groups != nil {
		t.Errorf("without the API: %v %v", groups, known)
	}
}

func TestInputs(t *testing.T) {
	s := Settings{ModelRegistry: config.ModelRegistry{Gateway: config.RegistryGateway{Domain: "g"}, SkipCatalogDatabase: true}}
	in := s.inputs(capability.NewSet(capability.Route, capability.HTTPRoute), "found.example.com")
	if !in.OpenShift || !in.HTTPRoutes || in.ReferenceGrants || in.Domain != "found.example.com" || !in.SkipDatabase || !in.gatewayMode() {
		t.Errorf("%+v", in)
	}
	s.DefaultDomain = "set.example.com"
	if in := s.inputs(capability.NewSet(), "found.example.com"); in.OpenShift || in.Domain != "set.example.com" || in.gatewayMode() {
		t.Errorf("%+v", in)
	}
	if !knowsDomain(s, capability.NewSet(capability.OpenShiftIngress), nil) || !knowsDomain(Settings{}, capability.NewSet(), nil) {
		t.Error("nothing is to be waited for")
	}
}

// Metadata of the few kinds that are held beside the cache of the manager is read there, everything else is not.
func TestRoutedClient(t *testing.T) {
	b := newBench(t, &corev1.ConfigMap{ObjectMeta: named("other")}, &corev1.Secret{ObjectMeta: named(databaseName)})
	empty := newBench(t)
	side := b.r.side
	routed := side.routed(empty.server) // what is found comes from the side caches
	key := client.ObjectKeyFromObject(&corev1.ConfigMap{ObjectMeta: named("other")})
	if err := routed.Get(t.Context(), key, head(configMapKind)); err != nil {
		t.Error(err)
	}
	key.Name = databaseName
	if err := routed.Get(t.Context(), key, head(secretKind)); err != nil {
		t.Error(err)
	}
	if err := routed.Get(t.Context(), key, &corev1.Secret{}); err == nil {
		t.Error("a whole Secret was read from a cache of metadata")
	}
	if !AsMetadata(secretKind) || AsMetadata(deploymentKind) {
		t.Error("Secrets are never held whole, Deployments are")
	}
}
