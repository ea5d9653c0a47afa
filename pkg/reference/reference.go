package reference

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Kind is the kind of a referenced object of the core API group.
type Kind string

// The kinds that pods reference by name.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
	// PersistentVolumeClaim has no keys, and only its metadata is read.
	PersistentVolumeClaim Kind = "PersistentVolumeClaim"
)

func (k Kind) gvk() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(string(k)) }

// Reference is an object that pods use, and the keys that they use.
type Reference struct {
	Kind Kind
	Name string
	// Keys are the used keys; empty means all.
	Keys []string
	// Optional reports whether pods start without the object or its keys.
	Optional bool
	// NonEmpty reports whether a key with an empty value counts as missing.
	NonEmpty bool
}

// ID identifies the object in its namespace, such as "Secret/db". It is the key of its hash in HashesAnnotation.
func (r Reference) ID() string { return string(r.Kind) + "/" + r.Name }

// Missing is a reference that cannot be resolved.
type Missing struct {
	Reference
	// Key is the missing key; empty if the object does not exist.
	Key string
	// Empty is true if the key exists and has no value.
	Empty bool
}

// String returns the missing object or key and the fix in one line.
func (m Missing) String() string {
	if m.Key == "" {
		return string(m.Kind) + " " + m.Name + " does not exist; create it"
	}
	if m.Empty {
		return string(m.Kind) + " " + m.Name + " has no value for key " + m.Key + "; set it"
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

const (
	// Condition is False while an object or key that pods need to start does not exist, and absent otherwise.
	Condition = "ReferencesReady"
	// ReasonMissing is the reason of Condition.
	ReasonMissing = "ReferencesMissing"
)

// SetCondition sets Condition for missing objects and keys, even if running pods were started with them, and removes it if none is missing.
func SetCondition(all *[]metav1.Condition, generation int64, namespace string, missing []Missing) {
	if len(missing) == 0 {
		conditions.Remove(all, Condition)
		return
	}
	conditions.Set(all, Condition, metav1.ConditionFalse, ReasonMissing, Describe(namespace, missing), generation)
}

// Describe returns the missing objects and keys of a namespace and the fixes in one line, each once.
func Describe(namespace string, missing []Missing) string {
	texts := make([]string, 0, len(missing))
	for _, m := range missing {
		if text := m.String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return "In namespace " + namespace + ": " + strings.Join(texts, "; ")
}
