package openshift

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The rejection of a Route by a router is reported in one Event.
func TestReportsRejectedRoute(t *testing.T) {
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), inference("digits"))
	s.reconcileRoute("digits")
	responds := func(status string) string {
		t.Helper()
		route := routeObject()
		if !s.exists(route, "digits") {
			t.Fatal("the Route was not created")
		}
		condition := map[string]any{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed", "message": "taken by another"}
		if err := unstructured.SetNestedSlice(route.Object, []any{map[string]any{"routerName": "default", "conditions": []any{condition}}}, "status", "ingress"); err != nil {
			t.Fatal(err)
		}
		s.update(route)
		s.reconcileRoute("digits")
		emitted := s.takeEvents()
		s.expectNoRequests("answered", func() []string { return s.reconcileRoute("digits") })
		return emitted + s.takeEvents()
	}
	for _, status := range []string{"False", "True", "False"} {
		emitted := responds(status)
		if want := status == "False"; (strings.Count(emitted, ReasonNoRoute) == 1) != want ||
			want != strings.Contains(emitted, "router default does not admit Route team/digits") || want != strings.Contains(emitted, "(HostAlreadyClaimed): taken by another") {
			t.Errorf("Admitted=%s: unexpected Events %q", status, emitted)
		}
	}
}
