package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// answering is a transport that always gives the same answer.
type answering struct {
	status int
	err    error
}

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: http.NoBody}, nil
}

func TestPermissions(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/here/leases"
	for name, tc := range map[string]struct {
		method, path string
		want         string // what the report says this account may not do; "" for no report
	}{
		"get":                      {"GET", lease + "/x", "get leases.coordination.k8s.io in namespace here"},
		"create":                   {"POST", lease, "create leases.coordination.k8s.io in namespace here"},
		"update":                   {"PUT", lease + "/x", "update leases.coordination.k8s.io in namespace here"},
		"patch":                    {"PATCH", lease + "/x", "patch leases.coordination.k8s.io in namespace here"},
		"delete":                   {"DELETE", lease + "/x", "delete leases.coordination.k8s.io in namespace here"},
		"list":                     {"GET", "/apis/test.io/v1/widgets?limit=500", "list widgets.test.io in all namespaces"},
		"watch":                    {"GET", "/apis/test.io/v1/widgets?watch=true&allowWatchBookmarks=true", "watch widgets.test.io in all namespaces"},
		"watch in short":           {"GET", "/apis/test.io/v1/widgets?watch=1", "watch widgets.test.io in all namespaces"},
		"not essential":            {"GET", "/apis/route.openshift.io/v1/routes", ""},
		"same name, other group":   {"GET", "/apis/other.io/v1/widgets", ""},
		"a subresource":            {"PATCH", "/apis/test.io/v1/widgets/x/status", ""},
		"discovery":                {"GET", "/apis/test.io/v1", ""},
		"core":                     {"GET", "/api/v1/namespaces/here/secrets/x", ""},
		"a namespace as an object": {"GET", "/apis/test.io/v1/namespaces/here", ""},
		"root":                     {"GET", "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reported error
			next := &answering{status: http.StatusForbidden}
			p := &permissions{
				next: next, report: func(err error) { reported = err }, granted: map[string]bool{},
				essential: essentials(config.Config{LeaderElection: config.LeaderElection{Enabled: true}}, testTable(nil)),
			}
			ask := func() {
				response, err := p.RoundTrip(httptest.NewRequest(tc.method, tc.path, nil))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
			}
			ask()
			if tc.want == "" {
				if reported != nil {
					t.Errorf("reported %v", reported)
				}
				return
			}
			want := "missing permission: this account may not " + tc.want + ": apply the roles and bindings that come with the program"
			if reported == nil || reported.Error() != want {
				t.Errorf("reported %v, want %q", reported, want)
			}

			// Once granted, a later refusal is no reason to leave.
			reported = nil
			next.status = http.StatusOK
			ask()
			next.status = http.StatusForbidden
			ask()
			if reported != nil {
				t.Errorf("reported %v after it had been granted", reported)
			}
		})
	}
}

func TestPermissionsPassErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	p := &permissions{next: &answering{err: boom}, report: func(error) { t.Error("nothing to report") }}
	if _, err := p.RoundTrip(httptest.NewRequest(http.MethodGet, "/apis/test.io/v1/widgets", nil)); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

func TestEssentials(t *testing.T) {
	off := essentials(config.Config{}, nil)
	if len(off) != 0 {
		t.Errorf("nothing runs, yet %v is essential", off)
	}
	rows := enabledRows([]row{
		{Component: component.Component{Name: "on"}, Essential: []schema.GroupResource{{Resource: "a"}}},
		{Component: component.Component{Name: "off"}, Essential: []schema.GroupResource{{Resource: "b"}}},
	}, func(name string) bool { return name == "on" })
	got := essentials(config.Config{}, rows)
	if len(got) != 1 || !got[schema.GroupResource{Resource: "a"}] {
		t.Errorf("got %v", got)
	}
}
