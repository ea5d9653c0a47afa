package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// forbidden returns the response of the API server to a request that no role allows.
func forbidden(verb, resource, group string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "",
		fmt.Errorf(`User "system:serviceaccount:a:b" cannot %s resource %q in API group %q at the cluster scope`, verb, resource, group))
}

// forbiddenStatus returns the same response as JSON.
func forbiddenStatus(verb, resource string) string {
	status := forbidden(verb, resource, "test.io").ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, _ := json.Marshal(status)
	return string(text)
}

func newPermissions(report func(error), gracePeriod time.Duration) (*permissionMonitor, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	return &permissionMonitor{essential: essentialResources(testSpecs(nil)), report: report, clock: clk, gracePeriod: gracePeriod, startTime: clk.Now(),
		series: map[string]refusalSeries{}}, clk
}

func TestMissingPermissionIsReportedAfterGracePeriod(t *testing.T) {
	other := forbidden("list", "widgets", "test.io")
	other.ErrStatus.Message = "the proxy says no"
	for name, tc := range map[string]struct {
		err    error
		listed bool
		want   string // the permission that the report names as missing; "" for no report
	}{
		"list":                              {forbidden("list", "widgets", "test.io"), false, "list"},
		"list error wrapped by an informer": {fmt.Errorf("failed to list Widget: %w", forbidden("list", "widgets", "test.io")), false, "list"},
		"watch":                             {forbidden("watch", "widgets", "test.io"), false, "watch"},
		"watch after a list":                {forbidden("watch", "widgets", "test.io"), true, "watch"},
		"list after a list":                 {forbidden("list", "widgets", "test.io"), true, ""},
		"list forbidden, another message":   {other, false, ""},
		"another verb":                      {forbidden("get", "widgets", "test.io"), false, ""},
		"not essential":                     {forbidden("list", "routes", "route.openshift.io"), false, ""},
		"same name, other group":            {forbidden("list", "widgets", "other.io"), false, ""},
		"no details":                        {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden}}, false, ""},
		"internal error":                    {apierrors.NewInternalError(errors.New("User cannot list resource")), false, ""},
		"connection refused":                {errors.New("connection refused: cannot list resource"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reported error
			p, clk := newPermissions(func(err error) { reported = err }, time.Minute)
			p.check(tc.err, tc.listed)
			clk.SetTime(clk.Now().Add(time.Minute - time.Second))
			if p.check(tc.err, tc.listed); reported != nil { // the API server may not have loaded its roles yet
				t.Errorf("got report %v within the grace period", reported)
			}
			clk.SetTime(clk.Now().Add(time.Second))
			p.check(tc.err, tc.listed)
			if tc.want == "" {
				if reported != nil {
					t.Errorf("got report %v, want none", reported)
				}
				return
			}
			want := `missing permission: widgets.test.io is forbidden: User "system:serviceaccount:a:b" cannot ` + tc.want +
				` resource "widgets" in API group "test.io" at the cluster scope: apply the roles and bindings that come with the program`
			if reported == nil || reported.Error() != want {
				t.Errorf("got report %v, want %q", reported, want)
			}
		})
	}
}

// Forbidden responses that are more than refusalWindow apart do not stop the manager.
func TestForbiddenResponsesWithLongPauses(t *testing.T) {
	p, clk := newPermissions(func(err error) { t.Errorf("got report %v, want none", err) }, startupGracePeriod)
	for range 3 {
		p.check(forbidden("watch", "widgets", "test.io"), true)
		clk.SetTime(clk.Now().Add(refusalWindow + time.Second))
	}
}

// API servers that restart one after another reject requests for some seconds each. This does not stop a manager after watchCheckPeriod.
func TestForbiddenWatchAfterCheckPeriod(t *testing.T) {
	p, clk := newPermissions(func(err error) { t.Errorf("got report %v, want none", err) }, startupGracePeriod)
	clk.SetTime(clk.Now().Add(watchCheckPeriod))
	for range 3 {
		p.check(forbidden("watch", "widgets", "test.io"), true)
		clk.SetTime(clk.Now().Add(startupGracePeriod))
	}
}

func TestEssentialResources(t *testing.T) {
	specs := enabledSpecs([]componentSpec{
		{Component: component.Component{Name: "enabled", Requires: []schema.GroupVersionKind{{Kind: "Bell"}, {Kind: "Thing"}}}},
		{Component: component.Component{Name: "disabled", Requires: []schema.GroupVersionKind{{Kind: "Other"}}}},
	}, func(name string) bool { return name == "enabled" })
	got := essentialResources(specs)
	if len(got) != 2 || !got[schema.GroupResource{Resource: "bells"}] || !got[schema.GroupResource{Resource: "things"}] {
		t.Errorf("got %v, want bells and things", got)
	}
}
