package apply

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// thingSchema describes a kind with all types of lists and maps.
const thingSchema = `types:
- name: thing
  map:
    fields:
    - {name: spec, type: {namedType: spec}}
- name: spec
  map:
    fields:
    - {name: count, type: {scalar: numeric}}
    - {name: enabled, type: {scalar: boolean}}
    - {name: text, type: {scalar: string}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: args, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: parts, type: {list: {elementType: {namedType: part}, elementRelationship: associative, keys: [name]}}}
    - {name: nested, type: {namedType: spec}}
- name: part
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: size, type: {scalar: numeric}}
    - {name: settings, type: {map: {elementType: {scalar: string}}}}
    - {name: steps, type: {list: {elementType: {map: {elementType: {scalar: string}}}, elementRelationship: atomic}}}
`

// ownedBy returns the fields that the API server records for an object applied by one field owner.
func ownedBy(t *rapid.T, object map[string]any) fieldTree {
	parser, err := typed.NewParser(thingSchema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := parser.Type("thing").FromUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := value.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := owned.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return decodeFields(ownEntry(string(raw)).FieldsV1)
}

// No value below is a zero value: the API server may omit those.
var (
	word     = rapid.StringMatching(`[a-z]{1,4}`)
	number64 = rapid.Int64Range(1, 9)
	wordMap  = rapid.MapOfN(word, word, 1, 4)
	steps    = rapid.SliceOfN(wordMap, 1, 3)
)

func drawSpec(t *rapid.T, depth int) map[string]any {
	spec := map[string]any{"text": word.Draw(t, "text")}
	fields := map[string]func() any{
		"count":    func() any { return number64.Draw(t, "count") },
		"enabled":  func() any { return true },
		"labels":   func() any { return toAnyMap(wordMap.Draw(t, "labels")) },
		"selector": func() any { return toAnyMap(wordMap.Draw(t, "selector")) },
		"tags":     func() any { return anySlice(rapid.SliceOfNDistinct(word, 1, 4, rapid.ID).Draw(t, "tags")) },
		"args":     func() any { return anySlice(rapid.SliceOfN(word, 1, 4).Draw(t, "args")) },
		"parts":    func() any { return drawParts(t) },
	}
	if depth > 0 {
		fields["nested"] = func() any { return drawSpec(t, depth-1) }
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if rapid.Bool().Draw(t, name+"?") {
			spec[name] = fields[name]()
		}
	}
	return spec
}

func drawParts(t *rapid.T) []any {
	var parts []any
	for _, name := range rapid.SliceOfNDistinct(word, 1, 4, rapid.ID).Draw(t, "names") {
		part := map[string]any{"name": name}
		if rapid.Bool().Draw(t, "size?") {
			part["size"] = number64.Draw(t, "size")
		}
		if rapid.Bool().Draw(t, "settings?") {
			part["settings"] = toAnyMap(wordMap.Draw(t, "settings"))
		}
		if rapid.Bool().Draw(t, "steps?") {
			var list []any
			for _, step := range steps.Draw(t, "steps") {
				list = append(list, toAnyMap(step))
			}
			part["steps"] = list
		}
		parts = append(parts, part)
	}
	return parts
}

func toAnyMap(in map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range in {
		out[k] = v
	}
	return out
}

func anySlice(in []string) []any {
	var out []any
	for _, v := range in {
		out = append(out, v)
	}
	return out
}

func drawThing(t *rapid.T) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": drawSpec(t, 2)}}
}

// leaf is a scalar of an object with a function that changes it.
type leaf struct {
	path  string
	set   func(v any)
	value any
}

func leaves(path string, v any, set func(any)) []leaf {
	var all []leaf
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leaves(path+"."+name, v[name], func(next any) { v[name] = next })...)
		}
	case []any:
		for i := range v {
			all = append(all, leaves(fmt.Sprintf("%s[%d]", path, i), v[i], func(next any) { v[i] = next })...)
		}
	default:
		all = append(all, leaf{path, set, v})
	}
	return all
}

func differentValue(v any) any {
	switch v := v.(type) {
	case string:
		return v + "-other"
	case bool:
		return !v
	case int64:
		return v + 1
	default:
		return "other"
	}
}

func TestMatchesDesiredProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawThing(t)
		owned := ownedBy(t, want.Object)
		if !matchesDesired(want, want.DeepCopy(), owned) {
			t.Fatal("an object that was just applied does not match its desired state")
		}

		live := want.DeepCopy()
		all := leaves("", live.Object, nil)
		changed := rapid.SampledFrom(all).Draw(t, "leaf")
		changed.set(differentValue(changed.value))
		if matchesDesired(want, live, owned) {
			t.Fatalf("the live object matches, although it differs in %s", changed.path)
		}
		if matchesDesired(live, want, owned) {
			t.Fatalf("the live object matches, although the desired state differs in %s", changed.path)
		}
	})
}

func TestMatchesDesiredDetectsAddedAndRemovedFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawThing(t)
		owned := ownedBy(t, before.Object)
		after := before.DeepCopy()
		spec := after.Object["spec"].(map[string]any)
		removed := rapid.SampledFrom(slices.Sorted(maps.Keys(spec))).Draw(t, "field")
		delete(spec, removed)
		if matchesDesired(after, before, owned) {
			t.Fatalf("the live object matches, although %s is owned and no longer desired", removed)
		}
		if matchesDesired(before, after, owned) {
			t.Fatalf("the live object matches, although %s is desired and missing", removed)
		}
		if owned := ownedBy(t, after.Object); len(spec) > 0 && matchesDesired(before, before, owned) {
			t.Fatalf("the live object matches, although %s is desired and not owned", removed)
		}
	})
}

func TestMatchesDesiredIgnoresForeignFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawThing(t)
		owned := ownedBy(t, want.Object)
		live := want.DeepCopy()
		spec := live.Object["spec"].(map[string]any)
		spec["foreign"] = drawSpec(t, 0)
		live.Object["status"] = drawSpec(t, 0)
		if labels, ok := spec["labels"].(map[string]any); ok {
			labels["foreign"] = "1"
		}
		for _, name := range []string{"tags", "parts"} {
			if list, ok := spec[name].([]any); ok {
				spec[name] = append([]any{map[string]any{"name": "a-foreign-one"}}, list...)
			}
		}
		if !matchesDesired(want, live, owned) {
			t.Fatal("foreign fields make the object differ from its desired state")
		}
	})
}
