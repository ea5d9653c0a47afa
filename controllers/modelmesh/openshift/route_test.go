package openshift

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// One Event reports that a router has rejected the Route.
func TestReportsRejectedRoute(t *testing.T) {
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), newInferenceService("digits"))
	env.reconcileRoute("digits")
	setAdmitted := func(status string) string {
		t.Helper()
		route := newRoute()
		if !env.exists(route, "digits") {
			t.Fatal("the Route was not created")
		}
		condition := map[string]any{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed", "message": "used by another Route"}
		if err := unstructured.SetNestedSlice(route.Object, []any{map[string]any{"routerName": "default", "conditions": []any{condition}}}, "status", "ingress"); err != nil {
			t.Fatal(err)
		}
		env.update(route)
		env.reconcileRoute("digits")
		emitted := env.takeEvents()
		env.expectNoRequests("unchanged status", func() []string { return env.reconcileRoute("digits") })
		return emitted + env.takeEvents()
	}
	for _, status := range []string{"False", "True", "False"} {
		emitted := setAdmitted(status)
		if want := status == "False"; (strings.Count(emitted, ReasonNoRoute) == 1) != want ||
			want != strings.Contains(emitted, "router default does not admit Route team/digits") || want != strings.Contains(emitted, "(HostAlreadyClaimed): used by another Route") {
			t.Errorf("Admitted=%s: unexpected Events %q", status, emitted)
		}
	}
}
