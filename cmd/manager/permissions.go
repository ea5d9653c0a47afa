package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// permissionError ends a start for which an essential permission is missing.
type permissionError struct {
	verb, namespace string
	resource        schema.GroupResource
}

// Error names the permission and the cure.
func (e *permissionError) Error() string {
	where := "in all namespaces"
	if e.namespace != "" {
		where = "in namespace " + e.namespace
	}
	return fmt.Sprintf("missing permission: this account may not %s %s %s: apply the roles and bindings that come with the program",
		e.verb, e.resource, where)
}

// permissions watches the answers of the API server. It needs no request of its own, unlike access reviews, which
// would be five writes at every start. A resource that was granted once is of no more interest: roles that change
// later are met by retries, not by an exit.
type permissions struct {
	next      http.RoundTripper
	essential map[schema.GroupResource]bool
	report    func(error)

	mu      sync.Mutex
	granted map[string]bool // by verb and resource
}

// essentials lists what the manager cannot work without.
func essentials(cfg config.Config, enabled []row) map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}
	if cfg.LeaderElection.Enabled {
		out[schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}] = true
	}
	for _, r := range enabled {
		for _, resource := range r.Essential {
			out[resource] = true
		}
	}
	return out
}

// watchPermissions calls stop with a *permissionError when a permission that is essential turns out to be missing.
func watchPermissions(restConfig *rest.Config, essential map[schema.GroupResource]bool, stop context.CancelCauseFunc) {
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &permissions{next: next, essential: essential, report: stop, granted: map[string]bool{}}
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
		p.report(&asked)
	}
	return response, nil
}

// parseRequest reads verb and resource of a request below /apis; others, and subresources, are not ours to judge.
func parseRequest(request *http.Request) (permissionError, bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) < 4 || parts[0] != "apis" {
		return permissionError{}, false
	}
	asked := permissionError{}
	asked.resource.Group = parts[1]
	rest := parts[3:]
	if rest[0] == "namespaces" && len(rest) >= 3 {
		asked.namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 2 {
		return permissionError{}, false
	}
	asked.resource.Resource = rest[0]
	asked.verb = verbOf(request, len(rest) == 2)
	return asked, true
}

func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	query := request.URL.Query()
	switch {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}
