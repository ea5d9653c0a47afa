// Package nested reads JSON as it came, where no type may drop a field: objects of users and of other controllers that are patched. What is of
// another type than expected counts as absent, so that no input can be a surprise.
package nested

import (
	"encoding/json"
	"strconv"

	kjson "sigs.k8s.io/json"
)

// At follows fields through objects, and indexes written as numbers through lists; nil when nothing stands there.
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

// Map is At for objects; nil when there is none.
func Map(value any, path ...string) map[string]any {
	fields, _ := At(value, path...).(map[string]any)
	return fields
}

// List is At for lists; nil when there is none.
func List(value any, path ...string) []any {
	list, _ := At(value, path...).([]any)
	return list
}

// Text is At for texts; empty when there is none.
func String(value any, path ...string) string {
	text, _ := At(value, path...).(string)
	return text
}

// Indexes of the elements of a list that have the name, in their order.
func Indexes(list []any, name any) []int {
	var found []int
	for i, element := range list {
		if fields := Map(element); fields != nil && fields["name"] == name {
			found = append(found, i)
		}
	}
	return found
}

// Named returns the first element of a list that has the name; nil when there is none.
func ByName(list []any, name any) map[string]any {
	for _, i := range Indexes(list, name) {
		return Map(list[i])
	}
	return nil
}

// Pick returns the given fields of an object, as far as they are there.
func Pick(fields map[string]any, names ...string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		if value, found := fields[name]; found {
			picked[name] = value
		}
	}
	return picked
}

// Decode reads fields into a type. Do not give it quantities of users: parsing one such as 1e-2000000000 takes minutes.
func Decode[T any](fields map[string]any) T {
	var into T
	if text, err := json.Marshal(fields); err == nil {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &into) // an error is about what counts as absent
	}
	return into
}
