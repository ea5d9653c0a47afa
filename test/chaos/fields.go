package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// leaf is a field, by its JSON pointer, with its value.
type leaf struct {
	pointer string
	value   any
}

// section returns the top-level field that contains the leaf, or the field of metadata that contains it.
func (l leaf) section() string {
	parts := strings.Split(strings.TrimPrefix(l.pointer, "/"), "/")
	if parts[0] == "metadata" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// applied returns the leaves of an object that the components applied, except keys of list items, sorted by pointer.
func applied(o *unstructured.Unstructured) ([]leaf, error) {
	var all []leaf
	for _, entry := range o.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || !slices.Contains(fieldOwners, entry.Manager) {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("reading the managed fields of %s: %w", o.GetName(), err)
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			if pointer, v, ok := locate(o.Object, path); ok && !isKey(path) {
				all = append(all, leaf{pointer, v})
			}
		})
	}
	slices.SortFunc(all, func(a, b leaf) int { return strings.Compare(a.pointer, b.pointer) })
	return slices.CompactFunc(all, func(a, b leaf) bool { return a.pointer == b.pointer }), nil
}

// isKey reports whether a field is a key of a list item: another value would create an item that no component applied.
func isKey(path fieldpath.Path) bool {
	if len(path) < 2 || path[len(path)-2].Key == nil || path[len(path)-1].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*path[len(path)-2].Key, func(key value.Field) bool { return key.Name == *path[len(path)-1].FieldName })
}

// locate resolves a path of managed fields in an object.
func locate(root any, path fieldpath.Path) (pointer string, found any, ok bool) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, step := range path {
		switch {
		case step.FieldName != nil:
			fields, is := root.(map[string]any)
			if root, ok = fields[*step.FieldName]; !is || !ok {
				return "", nil, false
			}
			pointer += "/" + escape.Replace(*step.FieldName)
		default:
			list, _ := root.([]any)
			i := slices.IndexFunc(list, func(item any) bool { return selects(step, item) })
			if i < 0 {
				return "", nil, false
			}
			root, pointer = list[i], fmt.Sprintf("%s/%d", pointer, i)
		}
	}
	return pointer, root, len(path) > 0
}

// selects reports whether a path element selects a list item.
func selects(step fieldpath.PathElement, item any) bool {
	switch {
	case step.Value != nil:
		return value.Equals(*step.Value, value.NewValueInterface(item))
	case step.Key != nil:
		fields, is := item.(map[string]any)
		if !is {
			return false
		}
		for _, key := range *step.Key {
			if have, known := fields[key.Name]; known && !value.Equals(key.Value, value.NewValueInterface(have)) {
				return false
			}
		}
		return true
	}
	return false
}

// at returns the scalar at a JSON pointer, nil if it does not exist.
func at(root any, pointer string) any {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, step := range strings.Split(pointer, "/")[1:] {
		switch node := root.(type) {
		case map[string]any:
			root = node[unescape.Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(node) {
				return nil
			}
			root = node[i]
		}
	}
	switch root.(type) {
	case map[string]any, []any:
		return nil
	}
	return root
}

// differentValue returns a different value of the same type.
func differentValue(v any) (any, bool) {
	switch typed := v.(type) {
	case string:
		return typed + "x", true
	case bool:
		return !typed, true
	case int64:
		return typed + 1, true
	case float64:
		return typed + 1, true
	}
	return nil, false
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func patchOf(operations ...operation) ([]byte, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return text, nil
}
