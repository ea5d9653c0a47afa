// Package nested reads fields of untyped JSON, such as objects of users and of other controllers that are patched without loss of unknown
// fields. A value of an unexpected type counts as absent.
package nested

import (
	"encoding/json"
	"strconv"

	kjson "sigs.k8s.io/json"
)

// At returns the value at a path of field names and list indexes; nil if it does not exist.
func At(value any, path ...string) any {
	for _, name := range path {
		switch node := value.(type) {
		case map[string]any:
			value = node[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			value = node[i]
		default:
			return nil
		}
	}
	return value
}

// Map returns the object at a path; nil if it does not exist.
func Map(value any, path ...string) map[string]any {
	fields, _ := At(value, path...).(map[string]any)
	return fields
}

// List returns the list at a path; nil if it does not exist.
func List(value any, path ...string) []any {
	list, _ := At(value, path...).([]any)
	return list
}

// String returns the string at a path; empty if it does not exist.
func String(value any, path ...string) string {
	text, _ := At(value, path...).(string)
	return text
}

// Indexes returns the indexes of the list items with a name, in order.
func Indexes(list []any, name any) []int {
	var found []int
	for i, element := range list {
		if fields := Map(element); fields != nil && fields["name"] == name {
			found = append(found, i)
		}
	}
	return found
}

// ByName returns the first list item with a name; nil if there is none.
func ByName(list []any, name any) map[string]any {
	for _, i := range Indexes(list, name) {
		return Map(list[i])
	}
	return nil
}

// Pick returns the given fields of an object that exist.
func Pick(fields map[string]any, names ...string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		if value, found := fields[name]; found {
			picked[name] = value
		}
	}
	return picked
}

// Decode decodes fields into a type. Fields must not contain quantities of users: parsing 1e-2000000000 takes minutes.
func Decode[T any](fields map[string]any) T {
	var into T
	if text, err := json.Marshal(fields); err == nil {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &into) // values of an unexpected type count as absent
	}
	return into
}
