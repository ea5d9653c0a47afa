package main

import (
	"net/http"
	"slices"
	"strings"
)

// request is a request to the Kubernetes API, in terms of RBAC.
type request struct {
	verb                         string // get, list, watch, create, update, patch, delete or deletecollection
	group, resource, subresource string // resource is empty for non-resource paths
	namespace, name              string
	path                         string
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parse parses a request as the API server does.
func parse(r *http.Request) request {
	q := request{verb: verbs[r.Method], path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		q.group, parts = parts[1], parts[3:]
	default:
		return q
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource = parts[0]
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = parts[2]
	}
	q.verb = verbFor(q, r.URL.Query().Get("watch"))
	return q
}

// verbFor distinguishes get, list and watch, and delete from deletecollection.
func verbFor(q request, watches string) string {
	switch {
	case q.verb == "get" && (watches == "true" || watches == "1"):
		return "watch"
	case q.verb == "get" && q.name == "":
		return "list"
	case q.verb == "delete" && q.name == "":
		return "deletecollection"
	}
	return q.verb
}

// writes reports whether the request changes an object of a component, as opposed to Leases, Events and access reviews.
func (q request) writes() bool {
	if q.resource == "leases" || q.resource == "events" || strings.HasSuffix(q.resource, "reviews") || q.resource == "" {
		return false
	}
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.verb)
}

// match selects requests; an empty field selects all.
type match struct {
	verbs, resources, namespaces []string
	// writes selects requests that change objects of components.
	writes bool
}

func (m match) matches(q request) bool {
	has := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return has(m.verbs, q.verb) && has(m.resources, q.resource) && has(m.namespaces, q.namespace) && (!m.writes || q.writes())
}

// watches selects all watches, or those of the given resources.
func watches(resources ...string) match { return match{verbs: []string{"watch"}, resources: resources} }
