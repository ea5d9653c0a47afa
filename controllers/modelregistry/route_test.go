package modelregistry

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// A rejection of the Route is reported with reason RouteNotAdmitted, and its host is removed from status and Service until a router admits
// the Route.
func TestRouteRejectedByRouter(t *testing.T) {
	env := newTestEnv(t, optionalKinds, newSecret("ns", "pg-login"), newSecret("ns", "team-a-kube-rbac-proxy"))
	m := newRegistry("demo", registrytest.AddProxy)
	env.reconcileUntilIdle(m)
	env.setRunning(m)
	const host, addressAnnotation = "demo-rest.apps.example.com", "routing.opendatahub.io/external-address-rest"
	expectHost := func(want bool) {
		t.Helper()
		service := &corev1.Service{}
		if !env.get(service, "ns", "demo") || (service.Annotations[addressAnnotation] != "") != want || slices.Contains(m.Status.Hosts, host) != want {
			t.Errorf("got address %q and hosts %v, want %s in both: %t", service.Annotations[addressAnnotation], m.Status.Hosts, host, want)
		}
	}
	env.admit(m)
	env.requireNoError(env.reconcile(m))
	expectHost(true)

	route := newUnstructured(capability.Route)
	env.get(route, "ns", resources.SecureRouteName(m))
	env.requireNoError(unstructured.SetNestedSlice(route.Object, []any{map[string]any{"routerName": "default", "conditions": []any{
		map[string]any{"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed", "message": "taken by another"},
	}}}, "status", "ingress"))
	env.requireNoError(env.server.Update(t.Context(), route))
	env.requireWait(env.reconcile(m), "available")
	expectHost(false)
	const message = "router default does not admit Route ns/demo-https with host " + host + " (HostAlreadyClaimed): taken by another"
	for _, conditionType := range []string{ConditionAvailable, ConditionProxy, routestatus.Condition} {
		if c, _ := conditions.Get(m.Status.Conditions, conditionType); c.Status != metav1.ConditionFalse || c.Reason != "RouteNotAdmitted" || c.Message != message {
			t.Errorf("got condition %+v, want False with RouteNotAdmitted and the message of the router", c)
		}
	}
	env.takeWrites()
	env.requireWait(env.reconcile(m), "available")
	if writes := env.takeWrites(); strings.TrimSpace(writes) != "" {
		t.Errorf("in steady state, wrote %q", writes)
	}

	env.admit(m)
	env.requireNoError(env.reconcile(m))
	expectHost(true)
	if _, found := conditions.Get(m.Status.Conditions, routestatus.Condition); found || !conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		t.Errorf("unexpected conditions %+v", m.Status.Conditions)
	}
}
