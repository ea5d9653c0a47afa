package apply

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// After a restart nothing is recorded, and an object is compared as it is in the cluster with the desired one. Both sides are trees:
//
//   - The entry of FieldOwner in managedFields contains every field that was applied and that no other client has changed or removed since. It
//     must have exactly the desired fields: matchesDesired walks both, and pairs the items of lists by their keys.
//   - The values are compared too, because mutating webhooks change them without a trace in managedFields. The API server
//     stores values in its own encoding, omits zero values and adds defaults: see equal and apiDefaults.
//
// A hash of the applied object in an annotation would not replace this: see docs/decisions/0029-no-hash-of-what-was-applied.md.

// matchesDesired reports whether applying desired would not change live: the owned fields are exactly the desired fields and have the
// desired values. A false negative costs one write without effect. The only false positive is a map that was applied empty, that
// another client has filled, and that is now desired with the same content: it looks like an atomic map.
func matchesDesired(desired, live *unstructured.Unstructured, owned *fieldpath.Set, scheme *runtime.Scheme) bool {
	if owned == nil {
		return false
	}
	return nodesMatch(node{withoutIdentity(desired.Object), canonicalize(desired, scheme), live.Object}, owned)
}

// canonicalize returns an object in the encoding of the API server: "1000m" becomes "1". It returns nil for unregistered kinds.
func canonicalize(desired *unstructured.Unstructured, scheme *runtime.Scheme) map[string]any {
	typed, err := scheme.New(desired.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, typed) != nil {
		return nil
	}
	canonical, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil
	}
	return canonical
}

// withoutIdentity returns a copy of an object without the identifying fields, which no client owns.
func withoutIdentity(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "apiVersion")
	delete(object, "kind")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range []string{"name", "namespace", "uid"} {
			delete(metadata, name)
		}
		object["metadata"] = metadata
		if len(metadata) == 0 {
			delete(object, "metadata")
		}
	}
	return object
}

// node is the value at one path in three trees: desired, desired in the encoding of the API server (nil if unknown), and live.
type node struct {
	desired, canonical, live any
}

// child returns the node of a map entry.
func (t node) child(name string) node {
	return node{lookup(t.desired, name), lookup(t.canonical, name), lookup(t.live, name)}
}

func lookup(tree any, name string) any {
	fields, _ := tree.(map[string]any)
	return fields[name]
}

// nodesMatch compares a node with owned fields below it.
func nodesMatch(t node, owned *fieldpath.Set) bool {
	switch desired := t.desired.(type) {
	case map[string]any:
		return fieldsMatch(t, desired, owned)
	case []any:
		return itemsMatch(t, desired, owned)
	default:
		return false // the owned struct or list is a scalar in the desired object
	}
}

func fieldsMatch(t node, desired map[string]any, owned *fieldpath.Set) bool {
	for _, element := range ownedElements(owned) {
		if element.FieldName == nil {
			return false // a list has become a map
		}
		if _, ok := desired[*element.FieldName]; !ok {
			return false // the owned field is no longer desired
		}
	}
	for name := range desired {
		if !elementMatches(t.child(name), owned, fieldpath.FieldNameElement(name)) {
			return false
		}
	}
	return true
}

// elementMatches compares the node at a path element. An atomic value must be equal; a value that is not owned must be zero in
// desired and absent in live.
func elementMatches(t node, owned *fieldpath.Set, element fieldpath.PathElement) bool {
	if children, ok := owned.Children.Get(element); ok {
		return nodesMatch(t, children)
	}
	if owned.Members.Has(element) {
		return valuesMatch(t)
	}
	return isZero(t.desired) && t.live == nil
}

// ownedElements returns the sorted path elements that are owned directly below a node.
func ownedElements(owned *fieldpath.Set) []fieldpath.PathElement {
	var elements []fieldpath.PathElement
	add := func(e fieldpath.PathElement) { elements = append(elements, e) }
	owned.Members.Iterate(add) // the range iterators of the library panic when a loop ends early
	owned.Children.Iterate(add)
	slices.SortFunc(elements, fieldpath.PathElement.Compare)
	return slices.CompactFunc(elements, fieldpath.PathElement.Equals)
}

// itemsMatch compares a list with owned items: owned and desired items must match one to one.
func itemsMatch(t node, desired []any, owned *fieldpath.Set) bool {
	elements, ok := assignElements(desired, ownedElements(owned))
	if !ok {
		return false
	}
	canonical, _ := t.canonical.([]any)
	live, _ := t.live.([]any)
	for i, element := range elements {
		j := slices.IndexFunc(live, func(item any) bool { return addresses(element, item) })
		if j < 0 {
			return false
		}
		item := node{desired: desired[i], live: live[j]}
		if i < len(canonical) {
			item.canonical = canonical[i]
		}
		if !elementMatches(item, owned, element) {
			return false
		}
	}
	return true
}

// assignElements returns the path element of each item, and false unless items and elements match one to one. Items with all keys are
// assigned first; the others leave keys to the defaults of the API server.
func assignElements(items []any, elements []fieldpath.PathElement) ([]fieldpath.PathElement, bool) {
	if len(items) != len(elements) {
		return nil, false
	}
	assigned := make([]fieldpath.PathElement, len(items))
	isAssigned := make([]bool, len(items))
	for _, matches := range []func(fieldpath.PathElement, any) bool{addresses, mayAddress} {
		for i, item := range items {
			if isAssigned[i] {
				continue
			}
			if j := slices.IndexFunc(elements, func(e fieldpath.PathElement) bool { return matches(e, item) }); j >= 0 {
				assigned[i], isAssigned[i] = elements[j], true
				elements = slices.Delete(elements, j, j+1)
			}
		}
	}
	return assigned, len(elements) == 0
}

// addresses reports whether a path element addresses a list item with all its keys.
func addresses(e fieldpath.PathElement, item any) bool {
	if e.Value != nil {
		return value.Equals(*e.Value, value.NewValueInterface(item))
	}
	return matchesKeys(e, item, false)
}

// mayAddress reports whether a path element may address a list item that leaves some keys to their defaults.
func mayAddress(e fieldpath.PathElement, item any) bool {
	return matchesKeys(e, item, true)
}

func matchesKeys(e fieldpath.PathElement, item any, allowMissing bool) bool {
	fields, ok := item.(map[string]any)
	if !ok || e.Key == nil {
		return false
	}
	for _, k := range *e.Key {
		v, found := fields[k.Name]
		if !found && !allowMissing || found && !value.Equals(k.Value, value.NewValueInterface(v)) {
			return false
		}
	}
	return true
}

// valuesMatch compares a scalar, or an atomic list or map.
func valuesMatch(t node) bool {
	return equal(t.desired, t.live) || t.canonical != nil && equal(t.canonical, t.live)
}

// equal reports whether live is the value that the API server stores for desired. Equal numbers may have different types, zero
// values may be absent, and the API server may add defaults to atomic values.
func equal(desired, live any) bool {
	if live == nil {
		return isZero(desired)
	}
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && equalMaps(desired, live)
	case []any:
		live, ok := live.([]any)
		return ok && equalLists(desired, live)
	default:
		return equalScalars(desired, live)
	}
}

func equalMaps(desired, live map[string]any) bool {
	for name, v := range desired {
		if !equal(v, live[name]) {
			return false
		}
	}
	for name, v := range live {
		if _, found := desired[name]; !found && !isEmpty(v) && !isDefault(name, v, live) {
			return false
		}
	}
	return true
}

func equalLists(desired, live []any) bool {
	if len(desired) != len(live) {
		return false
	}
	for i := range desired {
		if !equal(desired[i], live[i]) {
			return false
		}
	}
	return true
}

func equalScalars(desired, live any) bool {
	if a, ok := toFloat(desired); ok {
		b, ok := toFloat(live)
		return ok && a == b
	}
	switch desired.(type) {
	case string, bool:
		return desired == live
	default:
		return false
	}
}

// toFloat returns a number of decoded JSON. Integers in objects are far below 2^53.
func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// isEmpty reports whether a value is nil, or an empty map or list.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// isZero reports whether the API server may omit a value: a zero value, an empty list, or a map of such values.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			if !isZero(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	default:
		return v == nil
	}
}

// apiDefault is a default that the API server sets in an atomic list or map, which has one field owner.
type apiDefault struct {
	field string
	value any
	// sibling is a field that must exist in the same map.
	sibling string
}

// apiDefaults lists the defaults of the kinds that components apply. A missing entry costs one write without effect for each such object
// after a restart.
var apiDefaults = []apiDefault{
	// NetworkPolicy ports
	{"protocol", "TCP", "port"},
	// pod volumes and environment: ObjectFieldSelector, ResourceFieldSelector, ServiceAccountTokenProjection
	{"apiVersion", "v1", "fieldPath"},
	{"divisor", "0", "resource"},
	{"expirationSeconds", int64(3600), "path"},
	// volumeClaimTemplates
	{"volumeMode", "Filesystem", "accessModes"},
	// RBAC subjects that are users or groups
	{"apiGroup", "rbac.authorization.k8s.io", "kind"},
	// HTTPRoute: parentRefs, backendRefs, matches
	{"group", "gateway.networking.k8s.io", "name"},
	{"kind", "Gateway", "name"},
	{"group", "", "name"},
	{"kind", "Service", "name"},
	{"weight", int64(1), "name"},
	{"type", "PathPrefix", "value"},
	{"type", "Exact", "value"},
	{"path", map[string]any{"type": "PathPrefix", "value": "/"}, "headers"},
	{"matches", []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}}, "backendRefs"},
	// ServiceMonitor relabelings
	{"action", "replace", "targetLabel"},
}

// isDefault reports whether the API server may have set a field of live.
func isDefault(name string, v any, live map[string]any) bool {
	for _, d := range apiDefaults {
		if d.field == name && equal(d.value, v) {
			if _, ok := live[d.sibling]; ok {
				return true
			}
		}
	}
	return false
}
