package capability

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSet(t *testing.T) {
	var empty Set
	if empty.Has(Route) || empty.IsOpenShift() || empty.String() != "" || !empty.Equal(NewSet()) || !empty.HasAll() {
		t.Error("want the zero Set to be empty")
	}
	s := NewSet(Route, HTTPRoute)
	if s.IsOpenShift() {
		t.Error("want IsOpenShift to return false without the ingress configuration")
	}
	if NewSet(Route, OpenShiftIngress).HasOAuth() || NewSet(Route, UserGroup).HasOAuth() || !NewSet(Route, OpenShiftIngress, UserGroup).HasOAuth() {
		t.Error("want HasOAuth to return true only with Routes, the ingress configuration and the user API")
	}
	if !NewSet(Route, OpenShiftIngress).IsOpenShift() {
		t.Error("want IsOpenShift to return true with Routes and the ingress configuration")
	}
	if got, want := s.String(), "HTTPRoute.gateway.networking.k8s.io/v1,Route.route.openshift.io/v1"; got != want {
		t.Errorf("String %q, want %q", got, want)
	}
	if s.HasAll(Route, RayCluster) || !s.HasAll(Route, HTTPRoute) {
		t.Error("want HasAll to report true only if every kind is served")
	}
	if s.Has(schema.GroupVersionKind{Group: Route.Group, Version: "v2", Kind: Route.Kind}) {
		t.Error("Has ignores the version")
	}
}

func TestKnownReturnsACopy(t *testing.T) {
	first := Known()
	first[0] = schema.GroupVersionKind{}
	if Known()[0] == first[0] {
		t.Error("Known returned a shared slice")
	}
	if NewSet(Known()...).Len() != len(Known()) {
		t.Error("Known contains a kind twice")
	}
}
