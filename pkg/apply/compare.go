package apply

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

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
