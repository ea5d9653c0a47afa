package apply

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// optionalFields maps kinds to an optional field that earlier versions of their API lack. HTTPRoutes have timeouts since version 1.2 of the
// Gateway API. The API server rejects an apply with an unknown field.
var optionalFields = map[schema.GroupKind]string{{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: "timeouts"}

// detectUnsupportedField reports whether an apply failed for the optional field of a kind. The field is omitted from then on.
func (a *Applier) detectUnsupportedField(kind schema.GroupKind, err error) bool {
	field, optional := optionalFields[kind]
	if !optional || err == nil || !strings.Contains(err.Error(), "."+field+": field not declared in schema") {
		return false
	}
	a.unsupportedFields.Store(kind, true)
	return true
}

// withoutUnsupportedFields returns a child without the optional field, if the API server does not know it.
func (a *Applier) withoutUnsupportedFields(c child) (child, error) {
	if _, unsupported := a.unsupportedFields.Load(c.key.GroupKind()); !unsupported {
		return c, nil
	}
	var content map[string]any
	err := json.Unmarshal(c.body, &content)
	if err == nil {
		removeField(content, optionalFields[c.key.GroupKind()])
		c.body, err = json.Marshal(content)
	}
	if err != nil {
		return c, fmt.Errorf("leaving out what the API does not know: %w", err)
	}
	return c, nil
}

// removeField removes a field at every depth.
func removeField(tree any, field string) {
	switch t := tree.(type) {
	case map[string]any:
		delete(t, field)
		for _, child := range t {
			removeField(child, field)
		}
	case []any:
		for _, item := range t {
			removeField(item, field)
		}
	}
}
