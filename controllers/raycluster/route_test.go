package raycluster

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// The rejection of the dashboard's Route by a router is reported in one Event, and its end in another.
func TestRouterRefuses(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
	s.mustReconcile(u)
	s.eventsSince()
	name := raycluster.View(u.Object).Names().Dashboard
	responds := func(status string) {
		t.Helper()
		route := framework.Unstructured(capability.Route, "", "")
		if !s.exists(route, u.GetNamespace(), name) {
			t.Fatal("the Route was not created")
		}
		condition := map[string]any{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed", "message": "taken by another"}
		if err := unstructured.SetNestedSlice(route.Object, []any{map[string]any{"routerName": "default", "conditions": []any{condition}}}, "status", "ingress"); err != nil {
			t.Fatal(err)
		}
		if err := s.server.Update(t.Context(), route); err != nil {
			t.Fatal(err)
		}
	}
	responds("False")
	s.mustReconcile(u)
	if eventText := s.eventsSince(); strings.Count(eventText, "\n") > 0 || !strings.Contains(eventText, "Warning "+ReasonNotPublished+" router default does not admit Route ") ||
		!strings.Contains(eventText, "(HostAlreadyClaimed): taken by another") {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.expectIdle(u)
	if eventText := s.eventsSince(); eventText != "" {
		t.Errorf("Events were repeated: %q", eventText)
	}
	responds("True")
	s.mustReconcile(u)
	if eventText := s.eventsSince(); !strings.Contains(eventText, "Normal "+ReasonPublished) {
		t.Errorf("reported %q after the repair", eventText)
	}
	s.expectIdle(u)
}
