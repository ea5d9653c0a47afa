package capability

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSet(t *testing.T) {
	var none Set
	if none.Has(Route) || none.OpenShift() || none.String() != "" || !none.Equal(NewSet()) || !none.HasAll() {
		t.Error("the zero set is empty")
	}
	s := NewSet(Route, HTTPRoute)
	if s.OpenShift() {
		t.Error("Routes alone are not OpenShift")
	}
	if NewSet(Route, OpenShiftIngress).OAuth() || NewSet(Route, UserGroup).OAuth() || !NewSet(Route, OpenShiftIngress, UserGroup).OAuth() {
		t.Error("OAuth is that of OpenShift, and goes with the API of its users")
	}
	if !NewSet(Route, OpenShiftIngress).OpenShift() {
		t.Error("configuration and Routes are OpenShift")
	}
	if got, want := s.String(), "HTTPRoute.gateway.networking.k8s.io/v1,Route.route.openshift.io/v1"; got != want {
		t.Errorf("String %q, want %q", got, want)
	}
	if s.HasAll(Route, RayCluster) || !s.HasAll(Route, HTTPRoute) {
		t.Error("HasAll")
	}
	if s.Has(schema.GroupVersionKind{Group: Route.Group, Version: "v2", Kind: Route.Kind}) {
		t.Error("versions count")
	}
}

func TestKnownBelongsToTheCaller(t *testing.T) {
	first := Known()
	first[0] = schema.GroupVersionKind{}
	if Known()[0] == first[0] {
		t.Error("the table was changed from outside")
	}
	if NewSet(Known()...).Len() != len(Known()) {
		t.Error("the table names a kind twice")
	}
}
