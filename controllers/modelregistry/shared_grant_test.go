package modelregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

const sharedGrantDeletion = "delete ReferenceGrant " + servers.SharedGrantName

// sharedGrant returns the legacy ReferenceGrant of a namespace.
func sharedGrant() *unstructured.Unstructured {
	g := newUnstructured(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName(servers.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelComponent: resources.PartOf, resources.LabelAppComponent: resources.PartOf, resources.LabelCreatedBy: resources.CreatedBy, resources.LabelPartOf: resources.PartOf, resources.LabelManagedBy: resources.CreatedBy})
	return g
}

// routeTo returns a legacy HTTPRoute to a Service of a registry or the catalog.
func routeTo(namespace, service string) *unstructured.Unstructured {
	route := newUnstructured(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName("model-registry-" + service)
	route.SetLabels(map[string]string{resources.LabelApp: service, resources.LabelComponent: resources.PartOf, resources.LabelCreatedBy: resources.CreatedBy})
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": service, "namespace": namespace}}}}}
	return route
}

// grantTo returns a ReferenceGrant for one Service.
func grantTo(service string) *unstructured.Unstructured {
	g := newUnstructured(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName("allow-" + service)
	g.Object["spec"] = map[string]any{"from": []any{map[string]any{"kind": "HTTPRoute", "namespace": "routes"}}, "to": []any{map[string]any{"kind": "Service", "name": service}}}
	return g
}

// [D26] The shared ReferenceGrant is deleted once every registry and catalog that needs it has its own.
func TestSharedGrantIsDeleted(t *testing.T) {
	foreign := sharedGrant()
	foreign.SetLabels(map[string]string{resources.LabelCreatedBy: "ann"})
	previousRoute := routeTo("ns", "other") // a paused registry keeps its HTTPRoute in the previously configured namespace
	previousRoute.SetNamespace("earlier")
	for name, test := range map[string]struct {
		domain string
		exists []client.Object
		want   bool
	}{
		"no other registry":                                     {"gateway.example.com", []client.Object{sharedGrant()}, true},
		"gateway mode is off":                                   {"", []client.Object{sharedGrant()}, true},
		"other registry without grant":                          {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "other")}, false},
		"gateway mode is off, other registry without grant":     {"", []client.Object{sharedGrant(), routeTo("ns", "other")}, false},
		"other registry with its own grant":                     {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "other"), grantTo("other")}, true},
		"other registry with a route in the previous namespace": {"gateway.example.com", []client.Object{sharedGrant(), previousRoute, grantTo("other")}, false},
		"other registry is not published":                       {"gateway.example.com", []client.Object{sharedGrant(), newRegistry("other")}, true},
		"registry in another namespace":                         {"gateway.example.com", []client.Object{sharedGrant(), routeTo("elsewhere", "other")}, true},
		"one of two other registries without grant":             {"", []client.Object{sharedGrant(), routeTo("ns", "other"), routeTo("ns", "third"), grantTo("third")}, false},
		"catalog without grant":                                 {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "model-catalog")}, false},
		"catalog with its own grant":                            {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "model-catalog"), grantTo("model-catalog")}, true},
		"foreign grant":                                         {"gateway.example.com", []client.Object{foreign}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRegistry("demo", registrytest.AddProxy)
			env := newTestEnv(t, optionalKinds, append(test.exists, m.DeepCopy())...)
			env.settings.Gateway.Domain = test.domain
			env.requireWait(env.reconcile(m), "available")
			if got := env.takeWrites(); strings.Contains(got, sharedGrantDeletion) != test.want {
				t.Errorf("wrote\n%s", got)
			}
			if deleted := !env.get(newUnstructured(capability.ReferenceGrant), "ns", servers.SharedGrantName); deleted != test.want {
				t.Errorf("shared ReferenceGrant deleted: %t, want %t", deleted, test.want)
			}
			if got, want := env.get(newUnstructured(capability.ReferenceGrant), "ns", resources.GrantName(m)), test.domain != ""; got != want {
				t.Errorf("ReferenceGrant of the registry exists: %t, want %t", got, want)
			}
		})
	}
}

// [D26] The shared ReferenceGrant is deleted when the last registry or catalog has its own. If a user recreates it, it is kept.
func TestSharedGrantIsDeletedLater(t *testing.T) {
	m, other := newRegistry("demo", registrytest.AddProxy), newRegistry("other", registrytest.AddProxy)
	env := newTestEnv(t, optionalKinds, sharedGrant(), routeTo("ns", "model-catalog"), routeTo("ns", "other"), m.DeepCopy(), other.DeepCopy())
	env.settings.Gateway.Domain = "gateway.example.com"
	env.requireWait(env.reconcile(m), "available")
	env.requireWait(env.reconcile(other), "available")
	if got := env.takeWrites(); strings.Contains(got, sharedGrantDeletion) {
		t.Errorf("the shared ReferenceGrant was deleted, although the catalog needs it:\n%s", got)
	}
	env.requireNoError(env.server.Create(t.Context(), grantTo("model-catalog")))
	boom := errors.New("boom")
	env.fail = func(verb, _ string) error {
		if verb == "delete" {
			return boom
		}
		return nil
	}
	if err := env.reconcile(m); !errors.Is(err, boom) {
		t.Errorf("got error %v", err)
	}
	env.fail = nil
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != sharedGrantDeletion {
		t.Errorf("wrote\n%s", got)
	}
	env.requireNoError(env.server.Create(t.Context(), sharedGrant())) // created again by a user
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "" {
		t.Errorf("legacy objects are searched only once, but wrote\n%s", got)
	}
}

// [D2] ReferenceGrants are not requested if the API is not served.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	m := newRegistry("demo", registrytest.AddProxy)
	served := slices.Clone(optionalKinds)[:len(optionalKinds)-1]
	env := newTestEnv(t, served, sharedGrant(), m.DeepCopy())
	env.settings.Gateway.Domain = "gateway.example.com"
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); strings.Contains(got, "ReferenceGrant") || !strings.Contains(got, "HTTPRoute") {
		t.Errorf("wrote\n%s", got)
	}
}
