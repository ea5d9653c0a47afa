package apply

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// After a restart no record exists, and the live object is compared with the desired one. Both are trees:
//
//   - The entry of FieldOwner in managedFields contains every field that was applied and that no other client has changed or removed since. It
//     must have exactly the desired fields: matchesDesired walks both, and pairs the items of lists by their keys.
//   - The values are compared too, because mutating webhooks change them without a trace in managedFields. The API server omits zero values
//     and adds defaults: see equal and apiDefaults. Typed apply configurations encode quantities as the API server does.
//
// A hash of the applied object in an annotation would not replace this: see docs/decisions/0029-no-hash-of-what-was-applied.md.

// fieldTree is a set of fields as managedFields contain it. The names are those of fields ("f:spec"), of list items by their keys
// ("k:{...}") or value ("v:..."), and "." for the node itself. A node without others below it is a leaf.
type fieldTree = map[string]any

// decodeFields returns the fields of an entry in managedFields; nil if they are unreadable.
func decodeFields(fields *metav1.FieldsV1) fieldTree {
	var tree fieldTree
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &tree) != nil {
		return nil
	}
	return tree
}

// identityFields are the fields that no client owns.
var identityFields = [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}}

// removeIdentity removes the identityFields of an object.
func removeIdentity(object map[string]any) {
	for _, path := range identityFields {
		unstructured.RemoveNestedField(object, path...)
	}
	if isEmpty(object["metadata"]) {
		delete(object, "metadata")
	}
}

// matchesDesired reports whether applying desired would not change live: the owned fields are exactly the desired fields and have the
// desired values. It removes the identity of desired. A false negative costs one write without effect. The only false positive is a
// map that was applied empty, that another client has filled, and that is now desired with the same content: it looks like an atomic map.
func matchesDesired(desired, live *unstructured.Unstructured, owned fieldTree) bool {
	removeIdentity(desired.Object)
	return owned != nil && fieldsMatch(desired.Object, live.Object, owned)
}

// matches compares a desired and a live value. subtree contains the owned fields below them; nil if the value is not owned. A leaf is a scalar,
// or an atomic list or map, and must be equal. A value that is not owned must be zero in desired and absent in live.
func matches(desired, live, subtree any) bool {
	owned, ok := subtree.(fieldTree)
	if !ok {
		return isZero(desired) && live == nil
	}
	delete(owned, ".")
	if len(owned) == 0 {
		return equal(desired, live)
	}
	switch desired := desired.(type) {
	case map[string]any:
		return fieldsMatch(desired, live, owned)
	case []any:
		items, _ := live.([]any)
		return itemsMatch(desired, items, owned)
	default:
		return false // the owned struct or list is a scalar in the desired object
	}
}

func fieldsMatch(desired map[string]any, live any, owned fieldTree) bool {
	for element := range owned {
		name, isField := strings.CutPrefix(element, "f:")
		if _, found := desired[name]; !found || !isField {
			return false // the owned field is no longer desired, or a list has become a map
		}
	}
	for name, v := range desired {
		if !matches(v, nested.At(live, name), owned["f:"+name]) {
			return false
		}
	}
	return true
}

// itemsMatch compares a list with owned items, which must match the desired items one to one. A desired item may omit keys that have
// defaults, so each owned element is paired with the desired item that has most of its keys.
func itemsMatch(desired, live []any, owned fieldTree) bool {
	unpaired := slices.Clone(desired)
	for _, element := range slices.Sorted(maps.Keys(owned)) {
		best, most := -1, -1
		for i, item := range unpaired {
			if keys, _ := countKeys(element, item); keys > most {
				best, most = i, keys
			}
		}
		j := slices.IndexFunc(live, func(item any) bool { _, all := countKeys(element, item); return all })
		if best < 0 || j < 0 || !matches(unpaired[best], live[j], owned[element]) {
			return false
		}
		unpaired = slices.Delete(unpaired, best, best+1)
	}
	return len(unpaired) == 0
}

// countKeys returns how many keys of an element a list item has, and whether it has all. If the item does not match, found is -1.
func countKeys(element string, item any) (found int, all bool) {
	kind, text, _ := strings.Cut(element, ":")
	fields := nested.Map(item)
	if kind == "v" {
		text, fields = `{"":`+text+`}`, map[string]any{"": item}
	}
	keys := map[string]any{}
	if err := utiljson.Unmarshal([]byte(text), &keys); err != nil || kind != "k" && kind != "v" || fields == nil {
		return -1, false
	}
	for name, v := range keys {
		if field, ok := fields[name]; ok {
			if !same(v, field) {
				return -1, false
			}
			found++
		}
	}
	return found, found == len(keys)
}

// same reports whether two values are equal. Equal numbers may have different types.
func same(a, b any) bool { return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b)) }

// equal reports whether live is the value that the API server stores for desired: zero values may be absent, and the API server may add
// defaults to atomic values.
func equal(desired, live any) bool {
	if live == nil {
		return isZero(desired)
	}
	switch desired := desired.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		return ok && equalMaps(desired, fields)
	case []any:
		items, ok := live.([]any)
		return ok && slices.EqualFunc(desired, items, equal)
	default:
		return same(desired, live)
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

// isEmpty reports whether a value is nil, or an empty map or list.
func isEmpty(v any) bool {
	fields, isMap := v.(map[string]any)
	items, isList := v.([]any)
	return v == nil || isMap && len(fields) == 0 || isList && len(items) == 0
}

// isZero reports whether the API server may omit a value: a zero value, an empty list, or a map of such values.
func isZero(v any) bool {
	fields, isMap := v.(map[string]any)
	for _, field := range fields {
		if !isZero(field) {
			return false
		}
	}
	return isMap || isEmpty(v) || reflect.ValueOf(v).IsZero()
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
	return slices.ContainsFunc(apiDefaults, func(d apiDefault) bool {
		_, found := live[d.sibling]
		return d.field == name && found && equal(d.value, v)
	})
}

// OwnsExactly reports whether FieldOwner owns exactly the fields of a desired object, which has no lists, in the cached one. It compares no
// values, because the API server removes a field from the entry of FieldOwner when another client changes its value.
func (a *Applier) OwnsExactly(owner client.Object, object Object, cached metav1.Object) bool {
	o := newOwner(owner, a.Client.Scheme())
	c, err := newChild(o, object)
	if err != nil {
		return false
	}
	body := a.render(o, c).Object
	removeIdentity(body)
	return strings.HasPrefix(digestOf(cached.GetManagedFields(), a.FieldOwner), hashTree(fieldsOf(body)))
}

// fieldsOf returns the fields of an object whose only lists are owner references.
func fieldsOf(object map[string]any) fieldTree {
	tree := fieldTree{}
	for name, v := range object {
		fields := fieldsOf(nested.Map(v))
		for _, ref := range nested.List(v) {
			fields[fmt.Sprintf(`k:{"uid":%q}`, nested.String(ref, "uid"))] = fieldTree{}
		}
		tree["f:"+name] = fields
	}
	return tree
}

// hashContent returns a hash of an object without its status. Of the metadata it includes labels, annotations and owner references.
func hashContent(object *unstructured.Unstructured) uint64 {
	content := maps.Clone(object.Object)
	content["metadata"] = []any{object.GetLabels(), object.GetAnnotations(), object.GetOwnerReferences()}
	delete(content, "status")
	return hashJSON(content) | 1 // never 0, which means no mutation
}

// hashJSON returns a hash of a JSON object. It does not depend on the order of the fields.
func hashJSON(object map[string]any) uint64 {
	data, _ := json.Marshal(object) // cannot fail: the object was decoded from JSON
	return maphash.Bytes(hashSeed, data)
}
