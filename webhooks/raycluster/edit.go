package raycluster

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// place leads from the top of an object to a value in it; indexes of lists are written as numbers.
type place []string

func (p place) child(names ...string) place { return slices.Concat(p, names) }

func (p place) index(i int) place { return p.child(strconv.Itoa(i)) }

// pointer is the JSON pointer.
func (p place) pointer() string {
	var text strings.Builder
	for _, name := range p {
		text.WriteString("/" + author.Pointer(name))
	}
	return text.String()
}

// edit changes its own copy of an object and remembers how. Where the object has another shape than expected nothing is
// changed.
type edit struct {
	object map[string]any
	patch  []author.Operation
}

func editOf(object map[string]any) *edit {
	if object == nil {
		object = map[string]any{}
	}
	return &edit{object: runtime.DeepCopyJSON(object)}
}

// value is what stands at the place; nil when nothing does.
func (e *edit) value(p place) any { return nested.At(e.object, p...) }

func (e *edit) list(p place) []any { return nested.List(e.object, p...) }

func (e *edit) record(op string, p place, value any) {
	if value != nil {
		value = runtime.DeepCopyJSONValue(value)
	}
	e.patch = append(e.patch, author.Operation{Operation: op, Path: p.pointer(), Value: value})
}

// set puts a value into a field of an object, and makes the objects that lead to it.
func (e *edit) set(p place, value any) {
	for depth := 1; depth <= len(p); depth++ {
		parent := e.value(p[:depth-1])
		fields, isObject := parent.(map[string]any)
		if _, isList := parent.([]any); isList {
			continue
		}
		if !isObject {
			return
		}
		name := p[depth-1]
		if depth < len(p) && fields[name] != nil {
			continue
		}
		for _, below := range slices.Backward(p[depth:]) {
			value = map[string]any{below: value}
		}
		fields[name] = value
		e.record("add", p[:depth], value)
		return
	}
}

// replace puts another element into a list.
func (e *edit) replace(list place, i int, value any) {
	e.list(list)[i] = value
	e.record("replace", list.index(i), value)
}

// add puts an element at the end of a list, which may not be there yet.
func (e *edit) add(list place, value any) {
	before := e.list(list)
	if len(before) == 0 {
		e.set(list, []any{value})
		return
	}
	e.assign(list, append(before, value))
	e.record("add", list.child("-"), value)
}

// drop takes an element out of a list, and the list with its last one.
func (e *edit) drop(list place, i int) {
	before := e.list(list)
	if len(before) == 1 {
		e.remove(list)
		return
	}
	e.assign(list, slices.Delete(before, i, i+1))
	e.record("remove", list.index(i), nil)
}

// remove takes a field out of an object.
func (e *edit) remove(p place) {
	if fields, ok := e.value(p[:len(p)-1]).(map[string]any); ok {
		if _, there := fields[p[len(p)-1]]; there {
			delete(fields, p[len(p)-1])
			e.record("remove", p, nil)
		}
	}
}

// assign writes a list back into the object that holds it; lists of lists do not occur.
func (e *edit) assign(list place, value []any) {
	if fields, ok := e.value(list[:len(list)-1]).(map[string]any); ok {
		fields[list[len(list)-1]] = value
	}
}
