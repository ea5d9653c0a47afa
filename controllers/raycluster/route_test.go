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

// One Event reports that a router rejects the dashboard's Route, and another that the router admits it.
func TestRouteAdmissionIsReported(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
	s.mustReconcile(u)
	s.drainEvents()
	name := raycluster.View(u.Object).Names().Dashboard
	setAdmitted := func(status string) {
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
	setAdmitted("False")
	s.mustReconcile(u)
	if eventText := s.drainEvents(); strings.Count(eventText, "\n") > 0 || !strings.Contains(eventText, "Warning "+ReasonNotPublished+" router default does not admit Route ") ||
		!strings.Contains(eventText, "(HostAlreadyClaimed): taken by another") {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.expectIdle(u)
	if eventText := s.drainEvents(); eventText != "" {
		t.Errorf("Events were repeated: %q", eventText)
	}
	setAdmitted("True")
	s.mustReconcile(u)
	if eventText := s.drainEvents(); !strings.Contains(eventText, "Normal "+ReasonPublished) {
		t.Errorf("unexpected Events %q after the Route was admitted", eventText)
	}
	s.expectIdle(u)
}
