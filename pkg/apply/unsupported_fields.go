package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HTTPRoutes have timeouts since version 1.2 of the Gateway API. An earlier API server rejects an apply with them.
var httpRouteKind = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}

// detectUnsupportedTimeouts reports whether an apply failed because HTTPRoutes have no timeouts. They are omitted from then on.
func (a *Applier) detectUnsupportedTimeouts(kind schema.GroupKind, err error) bool {
	return kind == httpRouteKind && err != nil && strings.Contains(err.Error(), ".timeouts: field not declared in schema") && !a.omitTimeouts.Swap(true)
}

// render returns the body of an apply request that the API server knows.
func (a *Applier) render(o owner, c *child) (*unstructured.Unstructured, error) {
	body, err := c.render(a.Component, o)
	if err == nil && c.key.GroupKind() == httpRouteKind && a.omitTimeouts.Load() {
		rules, _ := lookup(body.Object, "spec", "rules").([]any)
		for _, rule := range rules {
			if fields, ok := rule.(map[string]any); ok {
				delete(fields, "timeouts")
			}
		}
	}
	return body, err
}
