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

// refusal is the response of the API server to a request that no role allows.
func refusal(verb, resource, group string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "",
		fmt.Errorf(`User "system:serviceaccount:a:b" cannot %s resource %q in API group %q at the cluster scope`, verb, resource, group))
}

// rbac is the same as the API server writes it.
func rbac(verb, resource string) string {
	status := refusal(verb, resource, "test.io").ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, _ := json.Marshal(status)
	return string(text)
}

func newPermissions(report func(error), borne time.Duration) (*permissionMonitor, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	return &permissionMonitor{essential: essentialResources(testSpecs(nil)), report: report, clock: clk, gracePeriod: borne, startTime: clk.Now(),
		series: map[string]refusalSeries{}}, clk
}

func TestMissingPermissionIsReportedAfterGracePeriod(t *testing.T) {
	other := refusal("list", "widgets", "test.io")
	other.ErrStatus.Message = "the proxy says no"
	for name, tc := range map[string]struct {
		err    error
		listed bool
		want   string // the permission that the report names as missing; "" for no report
	}{
		"list":                             {refusal("list", "widgets", "test.io"), false, "list"},
		"as informers wrap it":             {fmt.Errorf("failed to list Widget: %w", refusal("list", "widgets", "test.io")), false, "list"},
		"watch":                            {refusal("watch", "widgets", "test.io"), false, "watch"},
		"watch after a list":               {refusal("watch", "widgets", "test.io"), true, "watch"},
		"once granted":                     {refusal("list", "widgets", "test.io"), true, ""},
		"list rejected with another error": {other, false, ""},
		"another verb":                     {refusal("get", "widgets", "test.io"), false, ""},
		"not essential":                    {refusal("list", "routes", "route.openshift.io"), false, ""},
		"same name, other group":           {refusal("list", "widgets", "other.io"), false, ""},
		"no details":                       {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden}}, false, ""},
		"another status":                   {apierrors.NewInternalError(errors.New("User cannot list resource")), false, ""},
		"no answer":                        {errors.New("connection refused: cannot list resource"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reported error
			p, clk := newPermissions(func(err error) { reported = err }, time.Minute)
			p.check(tc.err, tc.listed)
			clk.SetTime(clk.Now().Add(time.Minute - time.Second))
			if p.check(tc.err, tc.listed); reported != nil { // an API server that has not read its roles yet
				t.Errorf("reported %v within a minute", reported)
			}
			clk.SetTime(clk.Now().Add(time.Second))
			p.check(tc.err, tc.listed)
			if tc.want == "" {
				if reported != nil {
					t.Errorf("reported %v", reported)
				}
				return
			}
			want := `missing permission: widgets.test.io is forbidden: User "system:serviceaccount:a:b" cannot ` + tc.want +
				` resource "widgets" in API group "test.io" at the cluster scope: apply the roles and bindings that come with the program`
			if reported == nil || reported.Error() != want {
				t.Errorf("reported %v, want %q", reported, want)
			}
		})
	}
}

// Forbidden responses within the grace period do not stop the manager.
func TestPermissionsWithinGracePeriod(t *testing.T) {
	p, clk := newPermissions(func(err error) { t.Errorf("reported %v", err) }, startupGracePeriod)
	for range 3 {
		p.check(refusal("watch", "widgets", "test.io"), true)
		clk.SetTime(clk.Now().Add(refusalWindow + time.Second))
	}
}

// API servers that are restarted one after the other refuse for some seconds each, and do not end a manager that has watched for long.
func TestForbiddenWatchAfterGracePeriod(t *testing.T) {
	p, clk := newPermissions(func(err error) { t.Errorf("reported %v", err) }, startupGracePeriod)
	clk.SetTime(clk.Now().Add(watchGracePeriod))
	for range 3 {
		p.check(refusal("watch", "widgets", "test.io"), true)
		clk.SetTime(clk.Now().Add(startupGracePeriod))
	}
}

func TestEssentialResources(t *testing.T) {
	rows := enabledSpecs([]componentSpec{
		{Component: component.Component{Name: "on", Requires: []schema.GroupVersionKind{{Kind: "Bell"}}}, Essential: []schema.GroupVersionKind{{Kind: "Thing"}}},
		{Component: component.Component{Name: "off"}, Essential: []schema.GroupVersionKind{{Kind: "Other"}}},
	}, func(name string) bool { return name == "on" })
	got := essentialResources(rows)
	if len(got) != 2 || !got[schema.GroupResource{Resource: "bells"}] || !got[schema.GroupResource{Resource: "things"}] {
		t.Errorf("got %v, want bells and things", got)
	}
}
