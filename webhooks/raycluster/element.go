package raycluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// element is an entry of a list in a pod template, such as a container.
type element = map[string]any

// encoder turns apply configurations into elements, and keeps the first error.
type encoder struct{ err error }

func (e *encoder) one(configuration any) element {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("encoding %T: %w", configuration, err)
	}
	return fields
}

func each[T any](e *encoder, configurations []T) []element {
	var elements []element
	for _, configuration := range configurations {
		elements = append(elements, e.one(configuration))
	}
	return elements
}

// ofUsers are the fields of our containers that users may set.
var ofUsers = []string{"resources", "imagePullPolicy"}

// same compares two elements as Kubernetes understands them: what is absent counts as its default.
func same(a, b any) bool { return reflect.DeepEqual(normal(a), normal(b)) }

// sameContainer is same for containers of ours, without what their user may set, and without the given fields.
func sameContainer(a, b element, without ...string) bool {
	return same(reduced(a, without...), reduced(b, without...))
}

func reduced(container element, without ...string) element {
	rest := maps.Clone(container)
	for _, field := range ofUsers {
		delete(rest, field)
	}
	for _, field := range without {
		delete(rest, field)
	}
	return rest
}

// defaults are values that mean the same as nothing.
var defaults = map[string]any{
	"protocol": "TCP", "readOnly": false, "optional": false, "defaultMode": int64(0o644), "apiVersion": "v1",
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "recursiveReadOnly": "Disabled",
}

// normal drops nulls, empty values and defaults of fields. Elements of lists stay.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if field = normal(field); !empty(field) && field != defaults[name] {
				fields[name] = field
			}
		}
		return fields
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = normal(value[i])
		}
		return list
	default:
		return value
	}
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

// upsert puts an element where one of its name stands, or at the end; further ones of the name go.
func (e *edit) upsert(list place, wanted element) {
	if present, i := e.only(list, wanted["name"]); present == nil {
		e.add(list, wanted)
	} else if !same(present, wanted) {
		e.list(list)[i] = wanted
	}
}

// upsertContainer is upsert for containers: what their user may set stays.
func (e *edit) upsertContainer(list place, wanted element) {
	present, i := e.only(list, wanted["name"])
	if present == nil {
		e.add(list, wanted)
		return
	}
	if sameContainer(present, wanted) && (!empty(present["resources"]) || empty(wanted["resources"])) {
		return
	}
	merged := maps.Clone(wanted)
	for _, field := range ofUsers {
		if !empty(present[field]) {
			merged[field] = present[field]
		}
	}
	e.list(list)[i] = merged
}

// only returns the first element of a list that has the name, and where it is. Further ones of the name are dropped.
func (e *edit) only(list place, name any) (element, int) {
	found := nested.Indexes(e.list(list), name)
	if len(found) == 0 {
		return nil, 0
	}
	for _, i := range slices.Backward(found[1:]) {
		e.drop(list, i)
	}
	return e.list(list)[found[0]].(map[string]any), found[0]
}
