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

// onOpenShift makes a testEnv serve the APIs of OpenShift.
func (b *testEnv) onOpenShift() *testEnv {
	b.served = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant)
	b.r.settings.Gateway = openShift().Gateway
	b.r.settings.DefaultDomain = "apps.example.com"
	return b
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

// [modelregistry-82] [modelregistry-83] Route and policy on OpenShift, and in gateway mode the HTTPRoute in addition.
func TestGatewayModeIsToggled(t *testing.T) {
	b := newTestEnv(t, sample()).onOpenShift()
	b.reconcileUntilStable()
	if host := field(t, must(b, liveRoute()), "spec", "host"); host != "model-catalog.apps.example.com" {
		t.Errorf("the Route has host %q, want model-catalog.apps.example.com", host)
	}
	must(b, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.RoutePolicy)})
	if b.get(httpRouteIn("redhat-ods-applications")) || b.get(grant()) || b.get(&corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)}) {
		t.Error("want a Route only, got objects of the gateway mode or a certificate")
	}

	b.r.settings.Gateway.Domain = "gateway.example.com"
	b.reconcileUntilStable()
	must(b, liveRoute())
	must(b, grant())
	if namespace := must(b, httpRouteIn("redhat-ods-applications")).GetLabels()[resources.LabelNamespace]; namespace != "lab-registries" {
		t.Errorf("the HTTPRoute has the namespace label %q, want lab-registries", namespace)
	}
	if got := must(b, &corev1.Service{ObjectMeta: nameMeta(resources.Name)}).Annotations[servers.AnnotationAddress]; got != "gateway.example.com/catalog" {
		t.Errorf("the Service has address %q, want gateway.example.com/catalog", got)
	}

	b.r.settings.Gateway.RouteNamespace = "elsewhere"
	b.reconcileUntilStable()
	must(b, httpRouteIn("elsewhere"))
	if b.get(httpRouteIn("redhat-ods-applications")) {
		t.Error("[D25] the HTTPRoute in the previous namespace was not deleted")
	}
	from, _, err := unstructured.NestedSlice(must(b, grant()).Object, "spec", "from")
	if err != nil || len(from) != 1 || from[0].(map[string]any)["namespace"] != "elsewhere" {
		t.Errorf("[D26] the ReferenceGrant is still for %v, %v", from, err)
	}

	b.r.settings.Gateway.Domain = ""
	b.reconcileUntilStable()
	if b.get(httpRouteIn("elsewhere")) || b.get(grant()) || !b.get(liveRoute()) {
		t.Error("[D25] want the HTTPRoute and the ReferenceGrant deleted, and the Route kept")
	}
}

// [W7] The objects follow the APIs that the cluster serves.
func TestCapabilitiesChange(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	must(b, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.IngressPolicy)})
	b.onOpenShift()
	b.reconcileUntilStable()
	must(b, liveRoute())
	if b.get(&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.IngressPolicy)}) {
		t.Error("the ingress policy of plain Kubernetes was not deleted; it admits more than that of the Route")
	}
	b.r.settings.Gateway.Domain = "gateway.example.com"
	b.served = capability.NewSet(capability.Route)
	b.reconcileUntilStable()
	if got := must(b, &corev1.Service{ObjectMeta: nameMeta(resources.Name)}).Annotations[servers.AnnotationAddress]; strings.HasPrefix(got, "gateway") {
		t.Errorf("[D22] address %q without a Gateway API", got)
	}
	b.onOpenShift()
	b.r.settings.Gateway.Domain = "gateway.example.com"
	b.reconcileUntilStable()
	must(b, httpRouteIn("redhat-ods-applications"))
}

// noDomain is the domain of a cluster that has none; true if that is known.
type noDomain bool

func (noDomain) Domain() string    { return "" }
func (d noDomain) HasSynced() bool { return bool(d) }

// While the domain of the cluster is unknown, objects that depend on it are not changed.
func TestUnknownDomain(t *testing.T) {
	b := newTestEnv(t, sample()).onOpenShift()
	b.reconcileUntilStable()
	b.r.settings.DefaultDomain = ""
	b.served = capability.NewSet(append(b.served.UnsortedList(), capability.OpenShiftIngress)...)
	b.r.domain = noDomain(false)
	b.writes = nil
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("got %+v, error %v, want a requeue", result, err)
	}
	if host := field(t, must(b, liveRoute()), "spec", "host"); host != "model-catalog.apps.example.com" {
		t.Errorf("the host was changed to %q", host)
	}
	b.r.domain = noDomain(true)
	b.reconcileUntilStable()
	if host := field(t, must(b, liveRoute()), "spec", "host"); host != "" {
		t.Errorf("got host %q without a domain, want none", host)
	}
}

// [modelregistry-78] The finalizer deletes objects in other namespaces, including previously configured ones.
func TestFinalizeOnOpenShift(t *testing.T) {
	b := newTestEnv(t, sample()).onOpenShift()
	b.r.settings.Gateway.Domain = "gateway.example.com"
	b.reconcileUntilStable()
	b.r.settings.Gateway.Domain, b.r.settings.Gateway.RouteNamespace = "", "elsewhere"
	legacy := httpRouteIn("elsewhere")
	legacy.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
	b.create(legacy)
	if err := b.server.Delete(t.Context(), must(b, sample())); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if b.get(httpRouteIn("redhat-ods-applications")) || b.get(httpRouteIn("elsewhere")) || b.get(sample()) {
		t.Error("an HTTPRoute or the Catalog was not deleted")
	}
}

// A foreign HTTPRoute is only adopted with labels of the legacy operator.
func TestForeignHTTPRoute(t *testing.T) {
	foreign := httpRouteIn("redhat-ods-applications")
	foreign.SetLabels(map[string]string{"app": "a user"})
	b := newTestEnv(t, sample(), foreign).onOpenShift()
	b.r.settings.Gateway.Domain = "gateway.example.com"
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := must(b, sample()).Status.Conditions[0].Message; !strings.Contains(got, "HTTPRoute redhat-ods-applications/model-catalog") {
		t.Errorf("got message %q, want the foreign HTTPRoute named", got)
	}
	if must(b, foreign).GetLabels()["app"] != "a user" {
		t.Error("the foreign HTTPRoute was adopted")
	}
}
