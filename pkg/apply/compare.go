package apply

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// settled says whether applying want would leave live as it is: the fields that we own there are exactly those that
// want names, and each holds the wanted value. It may err towards false, which costs one write that changes nothing.
// Towards true it errs in one case: a map that we wrote empty, that another client has filled, and that we now want
// with just that content looks like an atomic map of ours.
func settled(want, live *unstructured.Unstructured, owned *fieldpath.Set, scheme *runtime.Scheme) bool {
	if owned == nil {
		return false
	}
	return same(triple{anonymous(want.Object), canonical(want, scheme), live.Object}, owned)
}

// canonical returns an object as the API server would spell it: "1000m" becomes "1". It is nil when its Go type is not known.
func canonical(want *unstructured.Unstructured, scheme *runtime.Scheme) map[string]any {
	typed, err := scheme.New(want.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, typed) != nil {
		return nil
	}
	canon, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil
	}
	return canon
}

// anonymous returns an object without what names it, which no client owns.
func anonymous(object map[string]any) map[string]any {
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

// triple is one place in three trees: as desired, as desired in the spelling of the API server (nil when that is not
// known), and as it is.
type triple struct {
	want, canon, live any
}

// field descends into a map.
func (t triple) field(name string) triple {
	return triple{entry(t.want, name), entry(t.canon, name), entry(t.live, name)}
}

func entry(tree any, name string) any {
	fields, _ := tree.(map[string]any)
	return fields[name]
}

// same compares a place that has owned fields below it.
func same(t triple, owned *fieldpath.Set) bool {
	switch want := t.want.(type) {
	case map[string]any:
		return sameFields(t, want, owned)
	case []any:
		return sameElements(t, want, owned)
	default:
		return false // we own fields below something that is a single value now
	}
}

func sameFields(t triple, want map[string]any, owned *fieldpath.Set) bool {
	for _, element := range elements(owned) {
		if element.FieldName == nil {
			return false // a list has become a map
		}
		if _, ok := want[*element.FieldName]; !ok {
			return false // we own what we no longer want
		}
	}
	for name := range want {
		if !sameAt(t.field(name), owned, fieldpath.FieldNameElement(name)) {
			return false
		}
	}
	return true
}

// sameAt compares the place that a path element leads to. What is owned whole must be equal; what is not owned at
// all must say nothing.
func sameAt(t triple, owned *fieldpath.Set, element fieldpath.PathElement) bool {
	if below, ok := owned.Children.Get(element); ok {
		return same(t, below)
	}
	if owned.Members.Has(element) {
		return sameValue(t)
	}
	return isZero(t.want) && t.live == nil
}

// elements lists all that is owned directly below a place, each path element once and in order.
func elements(owned *fieldpath.Set) []fieldpath.PathElement {
	var list []fieldpath.PathElement
	add := func(e fieldpath.PathElement) { list = append(list, e) }
	owned.Members.Iterate(add) // the iterators that the library offers for range loops panic when a loop is left
	owned.Children.Iterate(add)
	slices.SortFunc(list, fieldpath.PathElement.Compare)
	return slices.CompactFunc(list, fieldpath.PathElement.Equals)
}

// sameElements compares a list whose elements are owned one by one: every owned element must stand for exactly one
// wanted element, and the other way round.
func sameElements(t triple, want []any, owned *fieldpath.Set) bool {
	places, ok := assign(want, elements(owned))
	if !ok {
		return false
	}
	canon, _ := t.canon.([]any)
	live, _ := t.live.([]any)
	for i, place := range places {
		j := slices.IndexFunc(live, func(item any) bool { return means(place, item) })
		if j < 0 {
			return false
		}
		item := triple{want: want[i], live: live[j]}
		if i < len(canon) {
			item.canon = canon[i]
		}
		if !sameAt(item, owned, place) {
			return false
		}
	}
	return true
}

// assign finds for each item the path element that addresses it, and fails unless they pair off. Items that spell
// out all their keys choose first; the rest left keys to the defaults of the API server.
func assign(items []any, free []fieldpath.PathElement) ([]fieldpath.PathElement, bool) {
	if len(items) != len(free) {
		return nil, false
	}
	places := make([]fieldpath.PathElement, len(items))
	done := make([]bool, len(items))
	for _, fits := range []func(fieldpath.PathElement, any) bool{means, couldMean} {
		for i, item := range items {
			if done[i] {
				continue
			}
			if j := slices.IndexFunc(free, func(e fieldpath.PathElement) bool { return fits(e, item) }); j >= 0 {
				places[i], done[i] = free[j], true
				free = slices.Delete(free, j, j+1)
			}
		}
	}
	return places, len(free) == 0
}

// means says whether a path element addresses a list item that holds all its keys.
func means(e fieldpath.PathElement, item any) bool {
	if e.Value != nil {
		return value.Equals(*e.Value, value.NewValueInterface(item))
	}
	return fitsKeys(e, item, false)
}

// couldMean is like means for an item that leaves some of its keys to defaults.
func couldMean(e fieldpath.PathElement, item any) bool {
	return fitsKeys(e, item, true)
}

func fitsKeys(e fieldpath.PathElement, item any, defaults bool) bool {
	fields, ok := item.(map[string]any)
	if !ok || e.Key == nil {
		return false
	}
	for _, k := range *e.Key {
		v, there := fields[k.Name]
		if !there && !defaults || there && !value.Equals(k.Value, value.NewValueInterface(v)) {
			return false
		}
	}
	return true
}
