package apply

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// settled says whether applying want would leave live as it is: the fields that we own there are exactly those that
// want names, and each holds the wanted value. It may err towards false, which costs one write that changes nothing.
// Towards true it errs in one case: a map that we wrote empty, that somebody else has filled, and that we now want
// with just that content looks like an atomic map of ours.
func settled(want, live *unstructured.Unstructured, owned *fieldpath.Set, scheme *runtime.Scheme) bool {
	if owned == nil {
		return false
	}
	canon, _ := canonical(want, scheme)
	return same(triple{anonymous(want.Object), canon, live.Object}, owned)
}

// canonical returns an object as the API server would spell it, when its Go type is known: "1000m" becomes "1".
func canonical(want *unstructured.Unstructured, scheme *runtime.Scheme) (map[string]any, bool) {
	typed, err := scheme.New(want.GroupVersionKind())
	if err != nil {
		return nil, false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, typed); err != nil {
		return nil, false
	}
	canon, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return canon, err == nil
}

// anonymous returns an object without what names it, which nobody owns.
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
