package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// answering is a transport that always gives the same answer.
type answering struct {
	status int
	text   string
	err    error
}

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.text))}, nil
}

// A server that answers at last is not left for what it refused before.
func TestPermissionsThatComeInTime(t *testing.T) {
	clk, next := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), &answering{status: http.StatusForbidden, text: rbac("list", "widgets")}
	p := &permissions{
		next: next, report: func(err error) { t.Errorf("reported %v", err) }, essential: essentials(testTable(nil)), clock: clk, borne: refusalsBorne,
		granted: map[string]bool{}, refused: map[string]time.Time{},
	}
	for _, status := range []int{http.StatusForbidden, http.StatusOK, http.StatusForbidden} {
		next.status = status
		response, err := p.RoundTrip(httptest.NewRequest(http.MethodGet, "/apis/test.io/v1/widgets", nil))
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		clk.SetTime(clk.Now().Add(refusalsBorne - time.Second))
	}
}

// rbac is the answer of the API server to what no role allows.
func rbac(verb, resource string) string {
	return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` + resource +
		` is forbidden: User \"system:serviceaccount:a:b\" cannot ` + verb + ` resource \"` + resource + `\" in API group \"test.io\" at the cluster scope"}`
}

func TestPermissions(t *testing.T) {
	const all = "/apis/test.io/v1/widgets"
	const one = "/apis/test.io/v1/namespaces/here/widgets"
	for name, tc := range map[string]struct {
		method, path string
		answer       string
		want         string // what the report says this account may not do; "" for no report
	}{
		"list":                     {"GET", all + "?limit=500", rbac("list", "widgets"), "list widgets.test.io in all namespaces"},
		"list of a namespace":      {"GET", one, rbac("list", "widgets"), "list widgets.test.io in namespace here"},
		"watch":                    {"GET", all + "?watch=true&allowWatchBookmarks=true", rbac("watch", "widgets"), "watch widgets.test.io in all namespaces"},
		"watch in short":           {"GET", all + "?watch=1", rbac("watch", "widgets"), "watch widgets.test.io in all namespaces"},
		"a list refused otherwise": {"GET", all, `{"message":"the proxy says no"}`, ""},
		"get":                      {"GET", one + "/x", rbac("get", "widgets"), ""},
		"create":                   {"POST", one, rbac("create", "widgets"), ""},
		"update":                   {"PUT", one + "/x", rbac("update", "widgets"), ""},
		"patch":                    {"PATCH", one + "/x", rbac("patch", "widgets"), ""},
		"delete":                   {"DELETE", one + "/x", rbac("delete", "widgets"), ""},
		"admission":                {"PATCH", one + "/x", `{"message":"admission webhook \"g\" denied the request: user cannot list resource x"}`, ""},
		"quota":                    {"POST", one, `{"message":"exceeded quota: count, requested: 1, used: 1, limited: 1"}`, ""},
		"a terminating namespace":  {"POST", one, `{"message":"unable to create new content in namespace here because it is being terminated"}`, ""},
		"not essential":            {"GET", "/apis/route.openshift.io/v1/routes", rbac("list", "routes"), ""},
		"same name, other group":   {"GET", "/apis/other.io/v1/widgets", rbac("list", "widgets"), ""},
		"a subresource":            {"PATCH", all + "/x/status", rbac("patch", "widgets"), ""},
		"discovery":                {"GET", "/apis/test.io/v1", rbac("list", "widgets"), ""},
		"core":                     {"GET", "/api/v1/namespaces/here/secrets/x", rbac("list", "secrets"), ""},
		"a namespace as an object": {"GET", "/apis/test.io/v1/namespaces/here", rbac("list", "widgets"), ""},
		"root":                     {"GET", "/", rbac("list", "widgets"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reported error
			clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			next := &answering{status: http.StatusForbidden, text: tc.answer}
			p := &permissions{
				next: next, report: func(err error) { reported = err }, essential: essentials(testTable(nil)), clock: clk, borne: time.Minute,
				granted: map[string]bool{}, refused: map[string]time.Time{},
			}
			ask := func() {
				response, err := p.RoundTrip(httptest.NewRequest(tc.method, tc.path, nil))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != tc.answer {
					t.Errorf("the caller reads %q, %v", body, err)
				}
			}
			ask()
			clk.SetTime(clk.Now().Add(time.Minute - time.Second))
			if ask(); reported != nil { // an API server that has not read its roles yet
				t.Errorf("reported %v within a minute", reported)
			}
			clk.SetTime(clk.Now().Add(time.Second))
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
	rows := enabledRows([]row{
		{Component: component.Component{Name: "on"}, Essential: []schema.GroupResource{{Resource: "a"}}},
		{Component: component.Component{Name: "off"}, Essential: []schema.GroupResource{{Resource: "b"}}},
	}, func(name string) bool { return name == "on" })
	got := essentials(rows)
	if len(got) != 1 || !got[schema.GroupResource{Resource: "a"}] {
		t.Errorf("got %v", got)
	}
}
