package modelregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// newTakeOverEnv returns an environment with the take-over.
func newTakeOverEnv(t *testing.T, served []schema.GroupVersionKind, objects ...client.Object) *testEnv {
	t.Helper()
	env := newTestEnv(t, served, objects...)
	env.takeOver = takeover.New(env.server, env.Applier, func(m *v1beta1.ModelRegistry) servers.Platform { return env.stateOf(m).platform })
	return env
}

// legacyCatalog returns the catalog of releases before the kind Catalog. It has owner references, but no controller reference.
func legacyCatalog() (*appsv1.Deployment, *corev1.Service) {
	labels := map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: "model-catalog", resources.LabelApp: "model-catalog"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "model-catalog", UID: "catalog-deployment", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "components.platform.opendatahub.io/v1alpha1", Kind: "ModelRegistry", Name: "default-modelregistry", UID: "p"}},
		}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "model-catalog", UID: "catalog-service", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "model-catalog", UID: "catalog-deployment"}},
		}}
}

// [modelregistry-37] A registry named model does not delete the legacy catalog, which it does not control.
func TestLegacyCatalogIsNotDeleted(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"unchanged":             func(client.Object) {},
		"without owners":        func(o client.Object) { o.SetOwnerReferences(nil) },
		"only label created-by": func(o client.Object) { o.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy}) },
		"only label created-by, without owners": func(o client.Object) {
			o.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
			o.SetOwnerReferences(nil)
		},
		"of another registry":    func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{controlledBy("other")}) },
		"of an earlier registry": func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{controlledBy("gone")}) },
	} {
		t.Run(name, func(t *testing.T) {
			d, s := legacyCatalog()
			change(d)
			change(s)
			env := newTakeOverEnv(t, nil, d, s)
			env.requireWait(env.reconcile(newRegistry("model")), "available")
			if got := env.takeWrites(); strings.Contains(got, "delete") {
				t.Errorf("wrote\n%s", got)
			}
		})
	}
}

func controlledBy(uid string) metav1.OwnerReference {
	r := ownerReference(v1beta1.Kind, uid, types.UID(uid))
	r.Controller = new(true)
	return r
}

// Legacy objects are read again before deletion, because a Catalog may have adopted them since they were listed.
func TestAdoptedLegacyObjectIsNotDeleted(t *testing.T) {
	m := newRegistry("model")
	d := legacyObject(m, &appsv1.Deployment{}, "model-catalog", true)
	d.UID = "catalog-deployment"
	env := newTakeOverEnv(t, nil, d)
	env.requireWait(env.reconcile(newRegistry("demo")), "available") // any registry of the namespace causes the list of legacy objects
	env.get(d, "ns", "model-catalog")
	for key, value := range names.Labels("modelcatalog") {
		d.Labels[key] = value
	}
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "aihub.opendatahub.io/v1alpha1", Kind: "Catalog", Name: "catalog", UID: "c", Controller: new(true)}}
	env.requireNoError(env.server.Update(t.Context(), d))
	env.requireWait(env.reconcile(m), "available")
	if !env.get(&appsv1.Deployment{}, "ns", "model-catalog") {
		t.Error("a Deployment that a Catalog controls was deleted")
	}
}

// [modelregistry-36] [modelregistry-37] D24: legacy objects under known names are deleted once, and no other objects.
func TestLegacyObjectsAreDeleted(t *testing.T) {
	m, other := newRegistry("model"), newRegistry("other")
	foreign := legacyObject(m, &corev1.Service{}, "model-catalog", false)
	foreign.OwnerReferences = []metav1.OwnerReference{ownerReference("Catalog", "catalog", "catalog")}
	foreign.OwnerReferences[0].Controller = new(true)
	unlabelled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-oauth-cookie-secret"}}
	binding := legacyObject(other, &rbacv1.ClusterRoleBinding{}, "other-auth-delegator", false)
	binding.Namespace, binding.Labels[resources.LabelNamespace] = "", "elsewhere"
	env := newTakeOverEnv(t, nil,
		legacyObject(m, &appsv1.Deployment{}, "model-catalog", true), foreign,
		legacyObject(m, &networkingv1.NetworkPolicy{}, "model-catalog-https-route", true),
		legacyObject(m, &networkingv1.NetworkPolicy{}, "model-https-route", true),
		legacyObject(m, &corev1.Secret{}, "model-oauth-cookie-secret", false),
		legacyObject(m, &corev1.ConfigMap{}, "model-notes", true), unlabelled, binding)
	env.requireWait(env.reconcile(m), "available")
	var deleted []string
	for write := range strings.Lines(env.takeWrites()) {
		if strings.HasPrefix(write, "delete ") {
			deleted = append(deleted, strings.TrimSpace(write))
		}
	}
	want := []string{"delete NetworkPolicy model-https-route", "delete NetworkPolicy model-catalog-https-route", "delete Deployment model-catalog",
		"delete Secret model-oauth-cookie-secret"}
	if diff := cmp.Diff(want, deleted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	env.requireWait(env.reconcile(other), "available")
	if got := env.takeWrites(); strings.Contains(got, "delete") {
		t.Errorf("objects without labels, or of another registry, were deleted:\n%s", got)
	}
	again := legacyObject(m, &corev1.Secret{}, "model-oauth-cookie-secret", false)
	env.requireNoError(env.server.Create(t.Context(), again))
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "" {
		t.Errorf("legacy objects are searched only once, but wrote\n%s", got)
	}
}

// [D1] Cluster-scoped objects that were never adopted are deleted too, except those of another registry of the same name.
func TestFinalizeLegacyObjects(t *testing.T) {
	for namespace, want := range map[string]bool{"ns": true, "elsewhere": false} {
		m := newRegistry("demo")
		binding := legacyObject(m, &rbacv1.ClusterRoleBinding{}, "demo-auth-delegator", false)
		binding.Namespace, binding.Labels[resources.LabelNamespace] = "", namespace
		env := newTakeOverEnv(t, nil, binding)
		env.requireWait(env.finalize(t.Context(), m), "status")
		env.requireWait(env.finalize(t.Context(), m), "status")
		if deleted := !env.get(binding, "", "demo-auth-delegator"); deleted != want {
			t.Errorf("ClusterRoleBinding of a registry in namespace %s deleted: %t, want %t", namespace, deleted, want)
		}
	}
}

// [modelregistry-40] D25: the deletion of a registry deletes a legacy HTTPRoute after gateway mode was disabled.
func TestDeletionRemovesTheHTTPRoute(t *testing.T) {
	for name, served := range map[string][]schema.GroupVersionKind{"served": optionalKinds, "not served [D2]": {capability.Route}} {
		t.Run(name, func(t *testing.T) {
			m := newRegistry("demo")
			legacy := newUnstructured(capability.HTTPRoute)
			legacy.SetNamespace("routes")
			legacy.SetName("model-registry-demo")
			legacy.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: "demo"})
			env := newTakeOverEnv(t, served, legacy)
			env.requireWait(env.finalize(t.Context(), m), "status")
			env.requireWait(env.finalize(t.Context(), m), "status")
			env.requireNoError(env.finalize(t.Context(), m))
			if deleted, want := !env.get(newUnstructured(capability.HTTPRoute), "routes", "model-registry-demo"), len(served) > 1; deleted != want {
				t.Errorf("HTTPRoute deleted: %t, want %t", deleted, want)
			}
		})
	}
}

// The ClusterRoleBinding of the legacy operator is adopted, even if the reconcile of another registry listed it before. Without the
// take-over, it is reported.
func TestLegacyBindingIsAdopted(t *testing.T) {
	for want, newEnv := range map[string]newEnvFunc{"available": newTakeOverEnv, "a conflict to be resolved": newTestEnv} {
		m := newRegistry("demo", registrytest.AddProxy)
		binding := legacyObject(m, &rbacv1.ClusterRoleBinding{}, "demo-auth-delegator", false)
		binding.Namespace, binding.UID = "", "binding"
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}
		env := newEnv(t, nil, binding)
		env.requireWait(env.reconcile(newRegistry("other")), "available")
		env.requireWait(env.reconcile(m), want)
		env.get(binding, "", binding.Name)
		if got := binding.Labels[names.ComponentLabel] == ComponentName; got != (want == "available") || strings.Contains(env.takeWrites(), "delete") {
			t.Errorf("%s: ClusterRoleBinding adopted: %t", want, got)
		}
	}
}

// [modelregistry-40] The HTTPRoute of the legacy operator is deleted if gateway mode is disabled, but not in other namespaces.
func TestLegacyHTTPRouteIsDeleted(t *testing.T) {
	other := routeTo("ns", "demo")
	other.SetNamespace("earlier")
	env := newTakeOverEnv(t, optionalKinds, routeTo("ns", "demo"), other)
	env.requireWait(env.reconcile(newRegistry("demo", registrytest.AddProxy)), "available")
	if env.get(newUnstructured(capability.HTTPRoute), "routes", other.GetName()) || !env.get(newUnstructured(capability.HTTPRoute), "earlier", other.GetName()) {
		t.Errorf("want one HTTPRoute deleted; wrote\n%s", env.takeWrites())
	}
}

// [modelregistry-52] D19: legacy conditions are removed, and that of the proxy is removed with the proxy.
func TestLegacyConditionsAreRemoved(t *testing.T) {
	m := newRegistry("demo")
	for _, conditionType := range []string{ConditionProxy, ConditionAvailable, "OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"} {
		setCondition(m, conditionType, metav1.ConditionTrue, "Old", "old")
	}
	env := newTakeOverEnv(t, nil)
	env.requireNoError(env.removeOutdatedConditions(t.Context(), m))
	if len(m.Status.Conditions) != 1 || m.Status.Conditions[0].Type != ConditionAvailable {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
}

// The take-over survives faults like the controller, and never takes the ClusterRoleBinding of the catalog.
func TestTakeOverWithFaultsAndTheCatalog(t *testing.T) {
	t.Run("faults", func(t *testing.T) { testFaultAtEveryCall(t, newTakeOverEnv) })
	t.Run("faults of a deletion", func(t *testing.T) { testFaultAtEveryCallOfADeletion(t, newTakeOverEnv) })
	t.Run("legacy binding of the catalog", func(t *testing.T) { testBindingOfTheCatalogIsNotDeleted(t, newTakeOverEnv) })
	t.Run("binding of the catalog", func(t *testing.T) { testBindingOfTheCatalogIsNotAdopted(t, newTakeOverEnv) })
}

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
			env := newTakeOverEnv(t, optionalKinds, append(test.exists, m.DeepCopy())...)
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
	env := newTakeOverEnv(t, optionalKinds, sharedGrant(), routeTo("ns", "model-catalog"), routeTo("ns", "other"), m.DeepCopy(), other.DeepCopy())
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
	env := newTakeOverEnv(t, served, sharedGrant(), m.DeepCopy())
	env.settings.Gateway.Domain = "gateway.example.com"
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); strings.Contains(got, "ReferenceGrant") || !strings.Contains(got, "HTTPRoute") {
		t.Errorf("wrote\n%s", got)
	}
}
