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

const sharedGrantGone = "delete ReferenceGrant " + servers.SharedGrantName

// sharedGrant returns the legacy ReferenceGrant of a namespace.
func sharedGrant() *unstructured.Unstructured {
	g := wholeObject(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName(servers.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelComponent: resources.PartOf, resources.LabelAppComponent: resources.PartOf, resources.LabelCreatedBy: resources.CreatedBy, resources.LabelPartOf: resources.PartOf, resources.LabelManagedBy: resources.CreatedBy})
	return g
}

// routeTo returns a legacy HTTPRoute to a Service of a registry or the catalog.
func routeTo(namespace, service string) *unstructured.Unstructured {
	route := wholeObject(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName("model-registry-" + service)
	route.SetLabels(map[string]string{resources.LabelApp: service, resources.LabelComponent: resources.PartOf, resources.LabelCreatedBy: resources.CreatedBy})
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": service, "namespace": namespace}}}}}
	return route
}

// grantTo returns a ReferenceGrant for one Service.
func grantTo(service string) *unstructured.Unstructured {
	g := wholeObject(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName("allow-" + service)
	g.Object["spec"] = map[string]any{"from": []any{map[string]any{"kind": "HTTPRoute", "namespace": "routes"}}, "to": []any{map[string]any{"kind": "Service", "name": service}}}
	return g
}

// [D26] The shared ReferenceGrant is deleted once every registry and catalog that needs it has its own.
func TestSharedGrantIsDeleted(t *testing.T) {
	foreign := sharedGrant()
	foreign.SetLabels(map[string]string{resources.LabelCreatedBy: "ann"})
	legacy := routeTo("ns", "other") // of a paused registry, in the previously configured namespace
	legacy.SetNamespace("earlier")
	for name, test := range map[string]struct {
		domain string
		exists []client.Object
		want   bool
	}{
		"no other registry":                                 {"gateway.example.com", []client.Object{sharedGrant()}, true},
		"gateway mode is off":                               {"", []client.Object{sharedGrant()}, true},
		"other registry without grant":                      {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "other")}, false},
		"gateway mode is off, other registry without grant": {"", []client.Object{sharedGrant(), routeTo("ns", "other")}, false},
		"other registry with its own grant":                 {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "other"), grantTo("other")}, true},
		"other registry in the previous namespace":          {"gateway.example.com", []client.Object{sharedGrant(), legacy, grantTo("other")}, false},
		"other registry is not published":                   {"gateway.example.com", []client.Object{sharedGrant(), newRegistry("other")}, true},
		"other registry with a route in another namespace":  {"gateway.example.com", []client.Object{sharedGrant(), routeTo("elsewhere", "other")}, true},
		"one of two other registries without grant":         {"", []client.Object{sharedGrant(), routeTo("ns", "other"), routeTo("ns", "third"), grantTo("third")}, false},
		"catalog without grant":                             {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "model-catalog")}, false},
		"catalog with its own grant":                        {"gateway.example.com", []client.Object{sharedGrant(), routeTo("ns", "model-catalog"), grantTo("model-catalog")}, true},
		"foreign grant":                                     {"gateway.example.com", []client.Object{foreign}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRegistry("demo", registrytest.Proxied)
			w := newTestEnv(t, everything, append(test.exists, m.DeepCopy())...)
			w.settings.Gateway.Domain = test.domain
			w.requireWait(w.reconcile(m), "available")
			if got := w.takeWrites(); strings.Contains(got, sharedGrantGone) != test.want {
				t.Errorf("wrote\n%s", got)
			}
			if gone := !w.get(wholeObject(capability.ReferenceGrant), "ns", servers.SharedGrantName); gone != test.want {
				t.Errorf("gone %v", gone)
			}
			if own := w.get(wholeObject(capability.ReferenceGrant), "ns", resources.GrantName(m)); own != (test.domain != "") {
				t.Errorf("a grant of its own: %v", own)
			}
		})
	}
}

// [D26] The last reconcile that gets its own ReferenceGrant deletes the shared one, and later ones do not read it.
func TestSharedGrantIsDeletedLater(t *testing.T) {
	m, other := newRegistry("demo", registrytest.Proxied), newRegistry("other", registrytest.Proxied)
	w := newTestEnv(t, everything, sharedGrant(), routeTo("ns", "model-catalog"), routeTo("ns", "other"), m.DeepCopy(), other.DeepCopy())
	w.settings.Gateway.Domain = "gateway.example.com"
	w.requireWait(w.reconcile(m), "available")
	w.requireWait(w.reconcile(other), "available")
	if got := w.takeWrites(); strings.Contains(got, sharedGrantGone) {
		t.Errorf("the catalog needs it still, got\n%s", got)
	}
	w.requireNoError(w.server.Create(t.Context(), grantTo("model-catalog")))
	boom := errors.New("boom")
	w.fail = func(verb, _ string) error {
		if verb == "delete" {
			return boom
		}
		return nil
	}
	if err := w.reconcile(m); !errors.Is(err, boom) {
		t.Errorf("ended with %v", err)
	}
	w.fail = nil
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != sharedGrantGone {
		t.Errorf("wrote\n%s", got)
	}
	w.requireNoError(w.server.Create(t.Context(), sharedGrant())) // by a user who wants it
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != "" {
		t.Errorf("the past is checked once, got\n%s", got)
	}
}

// [D2] ReferenceGrants are not requested if the API is not served.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	m := newRegistry("demo", registrytest.Proxied)
	served := slices.Clone(everything)[:len(everything)-1]
	w := newTestEnv(t, served, sharedGrant(), m.DeepCopy())
	w.settings.Gateway.Domain = "gateway.example.com"
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); strings.Contains(got, "ReferenceGrant") || !strings.Contains(got, "HTTPRoute") {
		t.Errorf("wrote\n%s", got)
	}
}
