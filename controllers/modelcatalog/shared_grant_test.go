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

const sharedGrantDeletion = "delete ReferenceGrant/" + servers.SharedGrantName

// sharedGrant returns the legacy ReferenceGrant.
func sharedGrant() *unstructured.Unstructured {
	g := &unstructured.Unstructured{}
	g.SetGroupVersionKind(capability.ReferenceGrant)
	g.SetNamespace(newCatalog().Namespace)
	g.SetName(servers.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
	return g
}

// routeTo returns the HTTPRoute of a registry in a namespace.
func routeTo(namespace string) *unstructured.Unstructured {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName("model-registry-demo")
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "demo", "namespace": namespace}}}}}
	return route
}

// newGatewayEnv returns an environment whose API server serves the APIs of gateway mode.
func newGatewayEnv(t *testing.T, domain string) *testEnv {
	env := newTestEnv(t, newCatalog())
	env.served = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant)
	env.r.settings.Gateway.Domain, env.r.settings.Gateway.RouteNamespace = domain, "routes"
	return env
}

// [D26] The shared ReferenceGrant is deleted when no HTTPRoute of a registry without its own ReferenceGrant refers to the namespace.
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
		"registry without its own grant":   {"gateway.example.com", sharedGrant(), routeTo(newCatalog().Namespace), false},
		"registry in another namespace":    {"gateway.example.com", sharedGrant(), routeTo("elsewhere"), true},
		"created by another client":        {"gateway.example.com", foreign, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newGatewayEnv(t, test.domain)
			env.create(test.grant)
			if test.route != nil {
				env.create(test.route)
			}
			env.reconcileUntilStable()
			if deleted := !env.get(test.grant); deleted != test.want {
				t.Errorf("shared ReferenceGrant deleted: %t, want %t", deleted, test.want)
			}
			catalogGrant := sharedGrant()
			catalogGrant.SetName(resources.GrantName)
			if got, want := env.get(catalogGrant), test.domain != ""; got != want {
				t.Errorf("ReferenceGrant of the catalog exists: %t, want %t", got, want)
			}
		})
	}
}

// [D26] The deletion of the shared ReferenceGrant is retried until it succeeds. A ReferenceGrant that is created again later is kept.
func TestSharedGrantIsDeletedOnce(t *testing.T) {
	env := newGatewayEnv(t, "gateway.example.com")
	env.create(sharedGrant())
	env.fail = func(verb string) error {
		if verb == "delete" {
			return errBroken
		}
		return nil
	}
	var err error
	for range 5 {
		if _, err = env.reconcile(); err != nil {
			break
		}
	}
	if !errors.Is(err, errBroken) || !slices.Contains(env.writes, sharedGrantDeletion) {
		t.Fatalf("got error %v after writes %v, want a failed deletion", err, env.writes)
	}
	env.fail = func(string) error { return nil }
	env.reconcileUntilStable()
	if env.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was not deleted")
	}
	env.create(sharedGrant())
	env.reconcileUntilStable()
	if !env.get(sharedGrant()) {
		t.Error("a ReferenceGrant that a user created later was deleted")
	}
}

// [D2] The shared ReferenceGrant is not deleted if the API is not served.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	env := newGatewayEnv(t, "gateway.example.com")
	env.served = capability.NewSet(capability.Route, capability.HTTPRoute)
	env.create(sharedGrant())
	env.reconcileUntilStable()
	if !env.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was deleted")
	}
}
