package modelregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

const sharedGrantGone = "delete ReferenceGrant " + resources.SharedGrantName

// sharedGrant is the grant that the original made once for a namespace.
func sharedGrant() *unstructured.Unstructured {
	g := wholeObject(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName(resources.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelComponent: resources.PartOf, resources.LabelAppComponent: resources.PartOf, resources.LabelCreatedBy: resources.CreatedBy, resources.LabelPartOf: resources.PartOf, resources.LabelManagedBy: resources.CreatedBy})
	return g
}

// catalogRoute publishes a catalog in a namespace.
func catalogRoute(namespace string) *unstructured.Unstructured {
	route := wholeObject(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName(catalogRouteName)
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "model-catalog", "namespace": namespace}}}}}
	return route
}

// catalogGrant is the one that the catalog has of its own.
func catalogGrant() *unstructured.Unstructured {
	g := wholeObject(capability.ReferenceGrant)
	g.SetNamespace("ns")
	g.SetName(catalogGrantName)
	g.SetLabels(names.Labels(catalogComponent))
	return g
}

// pausedRegistry is another registry of the namespace, which is left as it is.
func pausedRegistry(name string) *v1beta1.ModelRegistry {
	m := stored(name, registrytest.Proxied)
	m.Annotations = map[string]string{names.PausedAnnotation: "true"}
	return m
}

// D26: the grant of the original goes when every user who lived by it has his own, and no sooner.
func TestSharedGrantGoes(t *testing.T) {
	alien, later := sharedGrant(), stored("later")
	alien.SetLabels(map[string]string{resources.LabelCreatedBy: "ann"})
	later.DeletionTimestamp, later.Finalizers = new(metav1.Now()), []string{v1beta1.Finalizer}
	elsewhere := stored("elsewhere")
	elsewhere.Namespace = "elsewhere"
	for name, test := range map[string]struct {
		domain string
		beside []client.Object
		want   bool
	}{
		"all have their own":                    {"gateway.example.com", []client.Object{sharedGrant()}, true},
		"gateway mode is off":                   {"", []client.Object{sharedGrant()}, true},
		"another registry has none yet":         {"gateway.example.com", []client.Object{sharedGrant(), stored("other")}, false},
		"another registry, gateway mode is off": {"", []client.Object{sharedGrant(), stored("other")}, true},
		"another registry is paused":            {"", []client.Object{sharedGrant(), pausedRegistry("other")}, false},
		"another registry is going":             {"gateway.example.com", []client.Object{sharedGrant(), later}, true},
		"another registry is elsewhere":         {"gateway.example.com", []client.Object{sharedGrant(), elsewhere}, true},
		"the catalog has none yet":              {"gateway.example.com", []client.Object{sharedGrant(), catalogRoute("ns")}, false},
		"a catalog without gateway mode":        {"", []client.Object{sharedGrant(), catalogRoute("ns")}, false},
		"the catalog has its own":               {"gateway.example.com", []client.Object{sharedGrant(), catalogRoute("ns"), catalogGrant()}, true},
		"the catalog is elsewhere":              {"gateway.example.com", []client.Object{sharedGrant(), catalogRoute("elsewhere")}, true},
		"foreign":                               {"gateway.example.com", []client.Object{alien}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := stored("demo", registrytest.Proxied)
			w := newBench(t, everything, append(test.beside, m.DeepCopy())...)
			w.settings.Gateway.Domain = test.domain
			w.waits(w.reconcile(m), "available")
			if got := w.wrote(); strings.Contains(got, sharedGrantGone) != test.want {
				t.Errorf("wrote\n%s", got)
			}
			if gone := !w.get(wholeObject(capability.ReferenceGrant), "ns", resources.SharedGrantName); gone != test.want {
				t.Errorf("gone %v", gone)
			}
			if own := w.get(wholeObject(capability.ReferenceGrant), "ns", resources.GrantName(m)); own != (test.domain != "") {
				t.Errorf("a grant of its own: %v", own)
			}
		})
	}
}

// D26: what stood in the way is over: the grant goes in the reconcile of the one that was the last, and is then forgotten.
func TestSharedGrantGoesLater(t *testing.T) {
	m, other := stored("demo", registrytest.Proxied), pausedRegistry("other")
	w := newBench(t, everything, sharedGrant(), catalogRoute("ns"), m.DeepCopy(), other.DeepCopy())
	w.settings.Gateway.Domain = "gateway.example.com"
	w.waits(w.reconcile(m), "available")
	w.get(other, "ns", "other")
	other.Annotations = nil
	w.must(w.server.Update(t.Context(), other))
	w.waits(w.reconcile(other), "available")
	if got := w.wrote(); strings.Contains(got, sharedGrantGone) {
		t.Errorf("the catalog needs it still, got\n%s", got)
	}
	w.must(w.server.Create(t.Context(), catalogGrant()))
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
	w.waits(w.reconcile(m), "available")
	if got := w.wrote(); got != sharedGrantGone {
		t.Errorf("wrote\n%s", got)
	}
	w.must(w.server.Create(t.Context(), sharedGrant())) // by a user who wants it
	w.waits(w.reconcile(m), "available")
	if got := w.wrote(); got != "" {
		t.Errorf("the past is checked once, got\n%s", got)
	}
}

// D2: where ReferenceGrants are not served, no one asks for them.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	m := stored("demo", registrytest.Proxied)
	served := slices.Clone(everything)[:len(everything)-1]
	w := newBench(t, served, sharedGrant(), m.DeepCopy())
	w.settings.Gateway.Domain = "gateway.example.com"
	w.waits(w.reconcile(m), "available")
	if got := w.wrote(); strings.Contains(got, "ReferenceGrant") || !strings.Contains(got, "HTTPRoute") {
		t.Errorf("wrote\n%s", got)
	}
}

// The one that was seen goes, not another that has its name since.
func TestSharedGrantByUID(t *testing.T) {
	m, seen := stored("demo", registrytest.Proxied), sharedGrant()
	seen.SetUID("seen")
	w := newBench(t, everything, seen, stored("other"), m.DeepCopy())
	w.settings.Gateway.Domain = "gateway.example.com"
	w.waits(w.reconcile(m), "available")
	at := place{capability.ReferenceGrant.GroupKind(), types.NamespacedName{Namespace: "ns", Name: resources.SharedGrantName}}
	if found := w.leftovers.namespaces["ns"][at]; found == nil || found.UID != "seen" {
		t.Errorf("remembers %v", found)
	}
}

// D26: objects of the catalog wake the registries that may wait for them.
func TestEventsOfTheCatalog(t *testing.T) {
	elsewhere := stored("demo")
	elsewhere.Namespace = "elsewhere"
	w := newBench(t, everything, stored("demo"), stored("other"), elsewhere)
	route := catalogRoute("elsewhere")
	route.SetLabels(names.Labels(catalogComponent))
	outside := route.DeepCopy()
	labels := names.Labels(catalogComponent)
	labels[resources.LabelNamespace] = "elsewhere"
	outside.SetLabels(labels)
	for name, test := range map[string]struct {
		object client.Object
		want   []string
	}{
		"its grant":        {catalogGrant(), []string{"ns/demo", "ns/other"}},
		"its HTTPRoute":    {outside, []string{"elsewhere/demo"}},
		"one of nowhere":   {route, nil},
		"of the original":  {sharedGrant(), nil},
		"of registries":    {labelled(sharedGrant(), "ns", "x", names.Labels(ComponentName)), nil},
		"of another place": {labelled(catalogGrant(), "third", catalogGrantName, names.Labels(catalogComponent)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, woken(t, w.besideCatalog(), test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A route leads to where one of its backends is.
func TestLeadsTo(t *testing.T) {
	two := catalogRoute("a")
	rules, _, err := unstructured.NestedSlice(two.Object, "spec", "rules")
	if err != nil {
		t.Fatal(err)
	}
	more, _, err := unstructured.NestedSlice(catalogRoute("b").Object, "spec", "rules")
	if err != nil {
		t.Fatal(err)
	}
	two.Object["spec"] = map[string]any{"rules": append(rules, more...)}
	for name, test := range map[string]struct {
		route *unstructured.Unstructured
		want  []string
	}{
		"one backend": {catalogRoute("a"), []string{"a"}},
		"two rules":   {two, []string{"a", "b"}},
		"no rules":    {wholeObject(capability.HTTPRoute), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, namespace := range []string{"a", "b", "c", ""} {
				if leadsTo(decoded[gatewayv1.HTTPRoute](t, test.route), namespace) {
					got = append(got, namespace)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
