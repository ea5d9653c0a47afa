package reference

import (
	"maps"
	"slices"
)

// Kind is the kind of a referenced object; all live in the core API group, version v1.
type Kind string

// The kinds that pods consume by name.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
	// Claim is a volume, which has no keys and is never read.
	PersistentVolumeClaim Kind = "PersistentVolumeClaim"
)

// Reference names an object that pods consume, and which part of it.
type Reference struct {
	Kind Kind
	Name string
	// Keys are the keys that pods consume; empty means all of them.
	Keys []string
	// Optional says that pods start without the object or its keys.
	Optional bool
}

// ID identifies the object inside its namespace, "Secret/db" for example. It is also the key under which the hash of
// the content is recorded on the workload.
func (r Reference) ID() string { return string(r.Kind) + "/" + r.Name }

// Missing is a reference that cannot be resolved.
type Missing struct {
	Reference
	// Key is the key that the object lacks; empty when the object itself does not exist.
	Key string
}

// String names the object, what it lacks and the fix, in one line.
func (m Missing) String() string {
	if m.Key == "" {
		return string(m.Kind) + " " + m.Name + " does not exist; create it"
	}
	return string(m.Kind) + " " + m.Name + " has no key " + m.Key + "; add it"
}

// Merge joins references to the same object: the keys add up, and it is optional only if it is so everywhere.
// References without a name are dropped. The result is sorted, so that equal inputs give equal outputs.
func Merge(refs []Reference) []Reference {
	byID := map[string]Reference{}
	for _, r := range refs {
		if r.Name == "" {
			continue
		}
		if seen, ok := byID[r.ID()]; ok {
			r = mergeKeys(seen, r)
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
		a.Keys = nil // one of them consumes everything
		return a
	}
	a.Keys = slices.Concat(a.Keys, b.Keys)
	return a
}
