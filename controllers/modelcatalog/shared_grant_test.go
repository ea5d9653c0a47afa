package modelcatalog

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

const sharedGrantGone = "delete ReferenceGrant/" + servers.SharedGrantName

// sharedGrant returns the legacy ReferenceGrant.
func sharedGrant() *unstructured.Unstructured {
	g := &unstructured.Unstructured{}
	g.SetGroupVersionKind(capability.ReferenceGrant)
	g.SetNamespace(sample().Namespace)
	g.SetName(servers.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
	return g
}

// routeTo returns the HTTPRoute of a registry.
func routeTo(namespace string) *unstructured.Unstructured {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName("model-registry-demo")
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "demo", "namespace": namespace}}}}}
	return route
}

// gatewayBench serves the APIs of gateway mode.
func gatewayBench(t *testing.T, domain string) *testEnv {
	b := newTestEnv(t, sample())
	b.served = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant)
	b.r.settings.Gateway.Domain, b.r.settings.Gateway.RouteNamespace = domain, "routes"
	return b
}

// [D26] The shared ReferenceGrant is deleted once only the catalog needed it, or all others have their own.
func TestSharedGrantIsDeleted(t *testing.T) {
	foreign := sharedGrant()
	foreign.SetLabels(nil)
	for name, test := range map[string]struct {
		domain string
		grant  *unstructured.Unstructured
		route  *unstructured.Unstructured
		want   bool
	}{
		"no registry":                      {"gateway.example.com", sharedGrant(), nil, true},
		"no registry, gateway mode is off": {"", sharedGrant(), nil, true},
		"registry without its own grant":   {"gateway.example.com", sharedGrant(), routeTo(sample().Namespace), false},
		"registry in another namespace":    {"gateway.example.com", sharedGrant(), routeTo("elsewhere"), true},
		"created by another client":        {"gateway.example.com", foreign, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := gatewayBench(t, test.domain)
			b.create(test.grant)
			if test.route != nil {
				b.create(test.route)
			}
			b.reconcileUntilStable()
			if gone := !b.get(test.grant); gone != test.want {
				t.Errorf("gone %v", gone)
			}
			own := sharedGrant()
			own.SetName(resources.GrantName)
			if b.get(own) != (test.domain != "") {
				t.Error("want a ReferenceGrant of the catalog if and only if there is a domain")
			}
		})
	}
}

// [D26] The shared ReferenceGrant is read until its deletion succeeds, and then never again.
func TestSharedGrantIsReadOnce(t *testing.T) {
	b := gatewayBench(t, "gateway.example.com")
	b.create(sharedGrant())
	b.fail = func(verb string) error {
		if verb == "delete" {
			return errBroken
		}
		return nil
	}
	var failed error
	for range 5 {
		if _, failed = b.reconcile(); failed != nil {
			break
		}
	}
	if !errors.Is(failed, errBroken) || !slices.Contains(b.writes, sharedGrantGone) {
		t.Fatalf("ended with %v after %v", failed, b.writes)
	}
	b.fail = func(string) error { return nil }
	b.reconcileUntilStable()
	if b.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was not deleted")
	}
	b.create(sharedGrant())
	b.reconcileUntilStable()
	if !b.get(sharedGrant()) {
		t.Error("a ReferenceGrant that a user created later was deleted")
	}
}

// [D2] The shared ReferenceGrant is not requested if the API is not served.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	b := gatewayBench(t, "gateway.example.com")
	b.served = capability.NewSet(capability.Route, capability.HTTPRoute)
	b.create(sharedGrant())
	b.reconcileUntilStable()
	if !b.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was deleted")
	}
}
