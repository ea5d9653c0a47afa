package modelcatalog

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// onOpenShift sets the served APIs and the settings of a cluster with OpenShift.
func (env *testEnv) onOpenShift() *testEnv {
	env.served = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant)
	env.r.settings.Gateway = openShiftInputs().Gateway
	env.r.settings.DefaultDomain = "apps.example.com"
	return env
}

func objectOf(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func liveRoute() *unstructured.Unstructured {
	return objectOf(capability.Route, "lab-registries", resources.RouteName)
}

func httpRouteIn(namespace string) *unstructured.Unstructured {
	return objectOf(capability.HTTPRoute, namespace, resources.Name)
}

func grant() *unstructured.Unstructured {
	return objectOf(capability.ReferenceGrant, "lab-registries", resources.GrantName)
}

func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := value.(string)
	return text
}

// [modelregistry-82] [modelregistry-83] On OpenShift, a Catalog has a Route with its NetworkPolicy, and in gateway mode also an HTTPRoute
// and a ReferenceGrant.
func TestGatewayModeIsToggled(t *testing.T) {
	env := newTestEnv(t, newCatalog()).onOpenShift()
	env.reconcileUntilStable()
	if host := field(t, mustGet(env, liveRoute()), "spec", "host"); host != "model-catalog.apps.example.com" {
		t.Errorf("the Route has host %q, want model-catalog.apps.example.com", host)
	}
	mustGet(env, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.RoutePolicy)})
	if env.get(httpRouteIn("redhat-ods-applications")) || env.get(grant()) || env.get(&corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)}) {
		t.Error("objects of gateway mode or a certificate exist; want only the Route")
	}

	env.r.settings.Gateway.Domain = "gateway.example.com"
	env.reconcileUntilStable()
	mustGet(env, liveRoute())
	mustGet(env, grant())
	if namespace := mustGet(env, httpRouteIn("redhat-ods-applications")).GetLabels()[resources.LabelNamespace]; namespace != "lab-registries" {
		t.Errorf("the HTTPRoute has the namespace label %q, want lab-registries", namespace)
	}
	if got := mustGet(env, &corev1.Service{ObjectMeta: nameMeta(resources.Name)}).Annotations[servers.AnnotationAddress]; got != "gateway.example.com/catalog" {
		t.Errorf("the Service has address %q, want gateway.example.com/catalog", got)
	}

	env.r.settings.Gateway.RouteNamespace = "elsewhere"
	env.reconcileUntilStable()
	mustGet(env, httpRouteIn("elsewhere"))
	if env.get(httpRouteIn("redhat-ods-applications")) {
		t.Error("[D25] the HTTPRoute in the previous namespace was not deleted")
	}
	from, _, err := unstructured.NestedSlice(mustGet(env, grant()).Object, "spec", "from")
	if err != nil || len(from) != 1 || from[0].(map[string]any)["namespace"] != "elsewhere" {
		t.Errorf("[D26] got ReferenceGrant from %v, error %v; want namespace elsewhere", from, err)
	}

	env.r.settings.Gateway.Domain = ""
	env.reconcileUntilStable()
	if env.get(httpRouteIn("elsewhere")) || env.get(grant()) || !env.get(liveRoute()) {
		t.Error("[D25] want the HTTPRoute and the ReferenceGrant deleted, and the Route kept")
	}
}

// [W7] The objects change with the APIs that the cluster serves.
func TestCapabilitiesChange(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	mustGet(env, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.IngressPolicy)})
	env.onOpenShift()
	env.reconcileUntilStable()
	mustGet(env, liveRoute())
	if env.get(&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.IngressPolicy)}) {
		t.Error("the NetworkPolicy of plain Kubernetes, which allows all clients, was not deleted")
	}
	env.r.settings.Gateway.Domain = "gateway.example.com"
	env.served = capability.NewSet(capability.Route)
	env.reconcileUntilStable()
	if got := mustGet(env, &corev1.Service{ObjectMeta: nameMeta(resources.Name)}).Annotations[servers.AnnotationAddress]; strings.HasPrefix(got, "gateway") {
		t.Errorf("[D22] address %q without a Gateway API", got)
	}
	env.onOpenShift()
	env.r.settings.Gateway.Domain = "gateway.example.com"
	env.reconcileUntilStable()
	mustGet(env, httpRouteIn("redhat-ods-applications"))
}

// noDomain is a servers.Domain without a domain. Its value is the result of HasSynced.
type noDomain bool

func (noDomain) Domain() string    { return "" }
func (d noDomain) HasSynced() bool { return bool(d) }

// While the domain of the cluster is unknown, objects that depend on it are not changed.
func TestUnknownDomain(t *testing.T) {
	env := newTestEnv(t, newCatalog()).onOpenShift()
	env.reconcileUntilStable()
	env.r.settings.DefaultDomain = ""
	env.served = capability.NewSet(append(env.served.UnsortedList(), capability.OpenShiftIngress)...)
	env.r.domain = noDomain(false)
	env.writes = nil
	result, err := env.reconcile()
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("got %+v, error %v, want a requeue", result, err)
	}
	if host := field(t, mustGet(env, liveRoute()), "spec", "host"); host != "model-catalog.apps.example.com" {
		t.Errorf("the host was changed to %q", host)
	}
	env.r.domain = noDomain(true)
	env.reconcileUntilStable()
	if host := field(t, mustGet(env, liveRoute()), "spec", "host"); host != "" {
		t.Errorf("got host %q without a domain, want none", host)
	}
}

// [modelregistry-78] The finalizer deletes the HTTPRoutes in other namespaces, including namespaces that were configured earlier.
func TestFinalizeOnOpenShift(t *testing.T) {
	env := newTestEnv(t, newCatalog()).onOpenShift()
	env.r.settings.Gateway.Domain = "gateway.example.com"
	env.reconcileUntilStable()
	env.r.settings.Gateway.Domain, env.r.settings.Gateway.RouteNamespace = "", "elsewhere"
	if err := env.server.Delete(t.Context(), mustGet(env, newCatalog())); err != nil {
		t.Fatal(err)
	}
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	if env.get(httpRouteIn("redhat-ods-applications")) || env.get(newCatalog()) {
		t.Error("an HTTPRoute or the Catalog was not deleted")
	}
}
