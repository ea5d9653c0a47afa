package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// permissionError ends a start for which an essential permission is missing.
type permissionError struct {
	verb, namespace string
	resource        schema.GroupResource
}

// Error names the permission and the remedy.
func (e *permissionError) Error() string {
	where := "in all namespaces"
	if e.namespace != "" {
		where = "in namespace " + e.namespace
	}
	return fmt.Sprintf("missing permission: this account may not %s %s %s: apply the roles and bindings that come with the program",
		e.verb, e.resource, where)
}

// refusalsBorne is how long refusals are tried again: an API server that has just started refuses everything until it has read the
// roles, which takes seconds.
const refusalsBorne = 15 * time.Second

// permissions watches the answers of the API server. It needs no request of its own, unlike access reviews, which
// would be five writes at every start. A resource that was granted once is of no more interest: roles that change
// later are met by retries, not by an exit. Only a list or watch that an authorizer refuses counts: no object of a
// tenant can bring that about, while policies, quotas and namespaces that terminate answer writes with the same 403.
type permissions struct {
	next      http.RoundTripper
	essential map[schema.GroupResource]bool
	report    func(error)
	clock     clock.PassiveClock
	borne     time.Duration // after which a refusal is reported

	mu      sync.Mutex
	granted map[string]bool      // by verb and resource
	refused map[string]time.Time // since when
}

// essentials lists what the manager cannot work without.
func essentials(enabled []row) map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}
	for _, r := range enabled {
		for _, resource := range r.Essential {
			out[resource] = true
		}
	}
	return out
}

// watchPermissions calls stop with a *permissionError when a permission that is essential turns out to be missing, and to stay so.
func watchPermissions(restConfig *rest.Config, essential map[schema.GroupResource]bool, clk clock.PassiveClock, borne time.Duration, stop context.CancelCauseFunc) {
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &permissions{next: next, essential: essential, report: stop, clock: clk, borne: borne, granted: map[string]bool{}, refused: map[string]time.Time{}}
	})
}

// RoundTrip implements http.RoundTripper.
func (p *permissions) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	asked, ok := parseRequest(request)
	if !ok || !p.essential[asked.resource] {
		return response, nil
	}
	key := asked.verb + " " + asked.resource.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case response.StatusCode < http.StatusMultipleChoices || response.StatusCode == http.StatusNotFound:
		p.granted[key] = true
	case response.StatusCode == http.StatusForbidden && !p.granted[key]:
		if refusedByRBAC(response, asked) && p.lasts(key) {
			p.report(&asked)
		}
	}
	return response, nil
}

// lasts reports whether something has been refused for long.
func (p *permissions) lasts(key string) bool {
	now := p.clock.Now()
	if _, known := p.refused[key]; !known {
		p.refused[key] = now
	}
	return now.Sub(p.refused[key]) >= p.borne
}

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 16 << 10

// refusedByRBAC reads the answer, and puts it back for those who asked. Its words are those of the API server for what no
// authorizer allows; the Status has no field that tells it from other refusals.
func refusedByRBAC(response *http.Response, asked permissionError) bool {
	head, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
	return err == nil && bytes.Contains(head, []byte(" cannot "+asked.verb+" resource "))
}

// parseRequest reads verb and resource of a list or watch of resources below /apis; others are not ours to judge.
func parseRequest(request *http.Request) (permissionError, bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method != http.MethodGet || len(parts) < 4 || parts[0] != "apis" {
		return permissionError{}, false
	}
	asked := permissionError{verb: "list"}
	asked.resource.Group = parts[1]
	rest := parts[3:]
	if rest[0] == "namespaces" && len(rest) >= 3 {
		asked.namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 1 {
		return permissionError{}, false
	}
	asked.resource.Resource = rest[0]
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		asked.verb = "watch"
	}
	return asked, true
}
