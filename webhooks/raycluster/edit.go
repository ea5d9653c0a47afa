package raycluster

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// place leads from the top of an object to a value in it; indexes of lists are written as numbers.
type place []string

func (p place) child(names ...string) place { return slices.Concat(p, names) }

func (p place) index(i int) place { return p.child(strconv.Itoa(i)) }

// split returns the place of what holds the value, and the last name.
func (p place) split() (place, string) { return p[:len(p)-1], p[len(p)-1] }

// edit changes its own copy of an object. Where the object has another shape than expected nothing is changed.
type edit struct{ object map[string]any }

func editOf(object map[string]any) *edit {
	if object == nil {
		object = map[string]any{}
	}
	return &edit{object: runtime.DeepCopyJSON(object)}
}

func (e *edit) list(p place) []any { return nested.List(e.object, p...) }

// set puts a value into a field of an object, and makes the objects that lead to it.
func (e *edit) set(p place, value any) {
	parents, last := p.split()
	var node any = e.object
	for _, name := range parents {
		if fields := nested.Map(node); fields != nil && fields[name] == nil {
			fields[name] = map[string]any{}
		}
		node = nested.At(node, name)
	}
	if fields := nested.Map(node); fields != nil {
		fields[last] = value
	}
}

// add puts an element at the end of a list, which may not be there yet.
func (e *edit) add(list place, value any) { e.set(list, append(slices.Clone(e.list(list)), value)) }

// drop takes an element out of a list, and the list with its last one.
func (e *edit) drop(list place, i int) {
	if before := e.list(list); len(before) > 1 {
		e.set(list, slices.Delete(slices.Clone(before), i, i+1))
	} else {
		e.remove(list)
	}
}

// remove takes a field out of an object.
func (e *edit) remove(p place) {
	parents, last := p.split()
	delete(nested.Map(e.object, parents...), last)
}
