package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

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
