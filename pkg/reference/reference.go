package reference

import (
	"maps"
	"slices"
)

// Kind is the kind of a referenced object of the core API group.
type Kind string

// The kinds that pods reference by name.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
	// PersistentVolumeClaim has no keys and is never read.
	PersistentVolumeClaim Kind = "PersistentVolumeClaim"
)

// Reference is an object that pods use, and the keys that they use.
type Reference struct {
	Kind Kind
	Name string
	// Keys are the used keys; empty means all.
	Keys []string
	// Optional reports whether pods start without the object or its keys.
	Optional bool
}

// ID identifies the object in its namespace, such as "Secret/db". It is the key of its hash in HashesAnnotation.
func (r Reference) ID() string { return string(r.Kind) + "/" + r.Name }

// Missing is a reference that cannot be resolved.
type Missing struct {
	Reference
	// Key is the missing key; empty if the object does not exist.
	Key string
}

// String returns the missing object or key and the fix in one line.
func (m Missing) String() string {
	if m.Key == "" {
		return string(m.Kind) + " " + m.Name + " does not exist; create it"
	}
	return string(m.Kind) + " " + m.Name + " has no key " + m.Key + "; add it"
}

// Merge merges references to the same object: their keys are joined, and the object is optional if all of them are. References without a
// name are dropped. The result is sorted.
func Merge(refs []Reference) []Reference {
	byID := map[string]Reference{}
	for _, r := range refs {
		if r.Name == "" {
			continue
		}
		if existing, ok := byID[r.ID()]; ok {
			r = mergeKeys(existing, r)
		}
		byID[r.ID()] = r
	}
	merged := make([]Reference, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		r := byID[id]
		r.Keys = slices.Compact(slices.Sorted(slices.Values(r.Keys)))
		merged = append(merged, r)
	}
	return merged
}

func mergeKeys(a, b Reference) Reference {
	a.Optional = a.Optional && b.Optional
	if len(a.Keys) == 0 || len(b.Keys) == 0 {
		a.Keys = nil // all keys
		return a
	}
	a.Keys = slices.Concat(a.Keys, b.Keys)
	return a
}
