package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func TestParse(t *testing.T) {
	for target, want := range map[string]request{
		"GET /api/v1/namespaces/a/configmaps/b":                        {verb: "get", resource: "configmaps", namespace: "a", name: "b"},
		"GET /api/v1/namespaces/a":                                     {verb: "get", resource: "namespaces", name: "a"},
		"PUT /api/v1/namespaces/a/finalize":                            {verb: "update", resource: "namespaces", name: "a", subresource: "finalize"},
		"GET /apis/apps/v1/deployments?watch=true":                     {verb: "watch", group: "apps", resource: "deployments"},
		"GET /apis/apps/v1/namespaces/a/deployments":                   {verb: "list", group: "apps", resource: "deployments", namespace: "a"},
		"PATCH /apis/apps/v1/namespaces/a/deployments/b/scale":         {verb: "patch", group: "apps", resource: "deployments", namespace: "a", name: "b", subresource: "scale"},
		"DELETE /apis/apps/v1/namespaces/a/deployments":                {verb: "deletecollection", group: "apps", resource: "deployments", namespace: "a"},
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":      {verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"},
		"GET /apis/apps/v1":                                            {verb: "get"},
		"GET /version":                                                 {verb: "get"},
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/manager": {verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: "a", name: "manager"},
	} {
		method, path, _ := strings.Cut(target, " ")
		got := parse(httptest.NewRequest(method, path, http.NoBody))
		got.path = ""
		if got != want {
			t.Errorf("%s: got %+v, want %+v", target, got, want)
		}
	}
	writes := parse(httptest.NewRequest(http.MethodPatch, "/apis/apps/v1/namespaces/a/deployments/b", http.NoBody))
	review := parse(httptest.NewRequest(http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", http.NoBody))
	if !writes.writes() || review.writes() {
		t.Error("want a patch to count as a write, and a review not")
	}
	if (match{writes: true, resources: []string{"services"}}).matches(writes) || !(match{writes: true, namespaces: []string{"a"}}).matches(writes) {
		t.Error("want a match to select by resource and namespace")
	}
}

// newTestProxy returns a proxy for a server that counts requests, and sends a line for each value of events.
func newTestProxy(t *testing.T) (p *proxy, served *atomic.Int64, events chan string) {
	t.Helper()
	served, events = new(atomic.Int64), make(chan string)
	backend := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, r.URL.RawQuery)
			return
		}
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-events:
				fmt.Fprintln(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(backend.Close)
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	p = newProxy(target, backend.Client().Transport, clock.RealClock{}, 1)
	t.Cleanup(p.close)
	return p, served, events
}

func send(t *testing.T, p *proxy, method, path string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.server.Client().Do(request)
	if err == nil {
		t.Cleanup(func() { response.Body.Close() })
	}
	return response, err
}

const object = "/api/v1/namespaces/a/configmaps/b"

func TestProxyRespondsWithInjectedStatus(t *testing.T) {
	for _, code := range []int{409, 429, 500, 503, 504} {
		p, served, _ := newTestProxy(t)
		removeRule := p.addRule(rule{match: match{verbs: []string{"patch"}}, fault: respond(code)})
		response, err := send(t, p, http.MethodPatch, object)
		if err != nil || response.StatusCode != code {
			t.Fatalf("got response %v, error %v, want %d", response, err, code)
		}
		var status metav1.Status
		if err := json.NewDecoder(response.Body).Decode(&status); err != nil || int(status.Code) != code || status.Reason == "" {
			t.Errorf("unexpected status %+v, error %v", status, err)
		}
		if (response.Header.Get("Retry-After") != "") != (code == 429) {
			t.Errorf("got Retry-After %q for status %d", response.Header.Get("Retry-After"), code)
		}
		if served.Load() != 0 {
			t.Error("the request reached the server")
		}
		if response, err := send(t, p, http.MethodGet, object); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("got response %v, error %v for another verb, want 200", response, err)
		}
		removeRule()
		removeRule()
		if response, err := send(t, p, http.MethodPatch, object); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("got response %v, error %v after the fault, want 200", response, err)
		}
	}
}

func TestExecuteThen(t *testing.T) {
	p, served, _ := newTestProxy(t)
	p.addRule(rule{match: match{writes: true}, fault: executeThen(respond(504))})
	response, err := send(t, p, http.MethodPatch, object)
	if err != nil || response.StatusCode != http.StatusGatewayTimeout || served.Load() != 1 {
		t.Fatalf("got response %v, error %v, %d requests at the server, want 504 and 1", response, err, served.Load())
	}
	if p.writeCount() != 1 {
		t.Errorf("got %d writes, want 1", p.writeCount())
	}
	p.removeRules()
	p.addRule(rule{fault: executeThen(resetConnection)})
	if _, err := send(t, p, http.MethodDelete, object); err == nil || served.Load() < 2 {
		t.Errorf("got error %v, %d requests at the server, want an error and at least 2", err, served.Load())
	}
}

func TestResetConnection(t *testing.T) {
	p, served, _ := newTestProxy(t)
	p.addRule(rule{fault: resetConnection})
	if _, err := send(t, p, http.MethodPatch, object); err == nil || !strings.Contains(err.Error(), "reset") && !errors.Is(err, io.EOF) {
		t.Errorf("got error %v, want a reset connection", err)
	}
	if served.Load() != 0 {
		t.Error("the request reached the server")
	}
}

func TestDroppedRequestSucceedsAfterFault(t *testing.T) {
	p, served, _ := newTestProxy(t)
	removeRule := p.addRule(rule{fault: dropPackets})
	responded := make(chan error, 1)
	go func() {
		response, err := send(t, p, http.MethodPatch, object)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		responded <- err
	}()
	poll.Until(t, time.Minute, "the fault delays the request", func() bool { return p.hitCount() == 1 })
	if served.Load() != 0 {
		t.Error("the request reached the server")
	}
	removeRule()
	if err := <-responded; err != nil {
		t.Error(err)
	}
	if hits := p.hitCount(); hits != 1 {
		t.Errorf("got %d hits after the fault, want 1", hits)
	}
}

func TestShareOfRequestsFails(t *testing.T) {
	p, _, _ := newTestProxy(t)
	p.addRule(rule{share: 0.5, fault: respond(500)})
	failed := 0
	for range 100 {
		if response, err := send(t, p, http.MethodPatch, object); err == nil && response.StatusCode == http.StatusInternalServerError {
			failed++
		}
	}
	if failed < 25 || failed > 75 {
		t.Errorf("%d of 100 requests failed, want about 50", failed)
	}
}

// A watch delivers events, pauses during a fault, continues after the fault, and ends when the proxy closes it.
func TestWatchContinuesAfterFault(t *testing.T) {
	p, _, events := newTestProxy(t)
	response, err := send(t, p, http.MethodGet, "/api/v1/configmaps?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	events <- "one"
	if got := <-lines; got != "one" {
		t.Errorf("got %q, want 'one'", got)
	}
	removeRule := p.addRule(rule{match: watches("configmaps"), streams: true})
	events <- "two"
	poll.Until(t, time.Minute, "the fault delays the line", func() bool { return p.hitCount() > 0 })
	select {
	case got := <-lines:
		t.Errorf("got %q during the fault, want nothing", got)
	default:
	}
	removeRule()
	if got := <-lines; got != "two" {
		t.Errorf("got %q, want 'two'", got)
	}
	if ended := p.closeWatches(watches("secrets")); ended != 0 {
		t.Errorf("closed %d watches of another resource, want 0", ended)
	}
	if ended := p.closeWatches(watches()); ended != 1 {
		t.Errorf("closed %d watches, want 1", ended)
	}
	if got, more := <-lines; more {
		t.Errorf("got %q after the watch was closed, want nothing", got)
	}
}

func TestWatchExpiresWith410(t *testing.T) {
	p, _, _ := newTestProxy(t)
	p.addRule(rule{match: watches(), fault: expireWatch})
	response, err := send(t, p, http.MethodGet, "/api/v1/configmaps?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Type   string
		Object metav1.Status
	}
	if err := json.NewDecoder(response.Body).Decode(&event); err != nil || event.Type != "ERROR" || event.Object.Code != http.StatusGone {
		t.Errorf("unexpected event %+v, error %v", event, err)
	}
}

func TestListAtVersion(t *testing.T) {
	p, _, _ := newTestProxy(t)
	p.addRule(rule{fault: listAtVersion("42")})
	for request, want := range map[string]string{"limit=500&resourceVersion=0": "limit=500&resourceVersion=42&resourceVersionMatch=Exact", "limit=500": "limit=500"} {
		response, err := send(t, p, http.MethodGet, "/api/v1/configmaps?"+request)
		if err != nil {
			t.Fatal(err)
		}
		if query, err := io.ReadAll(response.Body); err != nil || string(query) != want {
			t.Errorf("got query %s, error %v, want %s", query, err, want)
		}
	}
	response, err := send(t, p, http.MethodGet, "/api/v1/configmaps?watch=1&sendInitialEvents=true")
	if err != nil || response.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("got response %v, error %v for a streaming list, want 422", response, err)
	}
}
