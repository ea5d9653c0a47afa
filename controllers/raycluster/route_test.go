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

// A router that refuses the Route of a dashboard is quoted in one Event, and so is that it does so no more.
func TestRouterRefuses(t *testing.T) {
	s := newScene(t)
	u := s.put(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
	s.must(u)
	s.said()
	name := raycluster.View(u.Object).Names().Dashboard
	answers := func(status string) {
		t.Helper()
		route := framework.Untyped(capability.Route, "", "")
		if !s.has(route, u.GetNamespace(), name) {
			t.Fatal("no Route")
		}
		condition := map[string]any{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed", "message": "taken by another"}
		if err := unstructured.SetNestedSlice(route.Object, []any{map[string]any{"routerName": "default", "conditions": []any{condition}}}, "status", "ingress"); err != nil {
			t.Fatal(err)
		}
		if err := s.server.Update(t.Context(), route); err != nil {
			t.Fatal(err)
		}
	}
	answers("False")
	s.must(u)
	if said := s.said(); strings.Count(said, "\n") > 0 || !strings.Contains(said, "Warning "+ReasonNotPublished+" router default does not admit Route ") ||
		!strings.Contains(said, "(HostAlreadyClaimed): taken by another") {
		t.Errorf("reported %q", said)
	}
	s.rests(u)
	if said := s.said(); said != "" {
		t.Errorf("reported again: %q", said)
	}
	answers("True")
	s.must(u)
	if said := s.said(); !strings.Contains(said, "Normal "+ReasonPublished) {
		t.Errorf("reported %q after the repair", said)
	}
	s.rests(u)
}
