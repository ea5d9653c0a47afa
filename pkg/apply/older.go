package apply

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newerFields name, by kind, what older versions of an API lack and an object can do without: HTTPRoutes have timeouts since version 1.2
// of the Gateway API. The API server refuses to apply a field that it does not know.
var newerFields = map[schema.GroupKind]string{{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: "timeouts"}

// learnsLack says that an apply failed for want of the newer field of a kind, which is left out from then on, until the process ends.
func (a *Applier) learnsLack(kind schema.GroupKind, err error) bool {
	field, newer := newerFields[kind]
	if !newer || err == nil || !strings.Contains(err.Error(), "."+field+": field not declared in schema") {
		return false
	}
	a.older.Store(kind, true)
	return true
}

// fitting is a child as the API of the cluster takes it.
func (a *Applier) fitting(c child) (child, error) {
	if _, older := a.older.Load(c.key.GroupKind()); !older {
		return c, nil
	}
	var content map[string]any
	err := json.Unmarshal(c.body, &content)
	if err == nil {
		strip(content, newerFields[c.key.GroupKind()])
		c.body, err = json.Marshal(content)
	}
	if err != nil {
		return c, fmt.Errorf("leaving out what the API does not know: %w", err)
	}
	return c, nil
}

// strip removes a field at every depth.
func strip(tree any, field string) {
	switch t := tree.(type) {
	case map[string]any:
		delete(t, field)
		for _, below := range t {
			strip(below, field)
		}
	case []any:
		for _, item := range t {
			strip(item, field)
		}
	}
}
