package podset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Place says what a fault is about.
type Place int

const (
	// InTemplate is the object.
	InTemplate Place = iota
	// InPodSets is the list of declared pod sets.
	InPodSets
	// InPath is the path of one declared pod set.
	InPath
	// InReplicas is the number of replicas of one declared pod set.
	InReplicas
)

// Fault is one thing that is wrong with the pod sets of a component.
type Fault struct {
	// Place says what the fault is about.
	Place Place
	// Set is the index of the declared pod set, for InPath and InReplicas.
	Set int
	// Missing tells that a required value is absent; otherwise the value is wrong.
	Missing bool
	// Value is what is wrong: a path or a number; nil for InTemplate and InPodSets.
	Value any
	// Message says why, in the words that clients know.
	Message string
}

// Error is the message.
func (f Fault) Error() string { return f.Message }

// Check compares the declared pod sets with the object. The first result is the number of pod sets that the component has.
//
// Every declared path has to be there once and to lead to a pod template. For the kinds whose pod sets the operator that we
// replace could infer, the declaration has to name each of them with the same number of replicas, and no other. For all
// other kinds it is taken as it is.
func Check(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured) (int, []Fault) {
	faults := checkEach(declared, u)
	r, known := ruleOf(u)
	if known && !r.binding && len(declared) > 0 {
		return len(declared), faults
	}
	sets, err := infer(u)
	if err != nil {
		return len(declared), append(faults, Fault{Place: InTemplate, Message: fmt.Sprintf("error inferring PodSets: %v", err)})
	}
	if len(declared) > 0 && len(sets) > 0 {
		faults = append(faults, compare(declared, sets)...)
	}
	return max(len(declared), len(sets)), faults
}

// checkEach looks at every declared pod set by itself, and for paths that stand there twice.
func checkEach(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured) []Fault {
	var faults []Fault
	seen := map[string]bool{}
	for i, set := range declared {
		if set.Replicas != nil && *set.Replicas < 0 {
			faults = append(faults, Fault{Place: InReplicas, Set: i, Value: *set.Replicas, Message: "replicas must be 0 or more"})
		}
		if set.Path == "" {
			faults = append(faults, Fault{Place: InPath, Set: i, Missing: true, Message: "podspec must specify path"})
			continue
		}
		if err := CheckTemplate(u.Object, set.Path); err != nil {
			faults = append(faults, Fault{Place: InPath, Set: i, Value: set.Path,
				Message: fmt.Sprintf("path does not refer to a v1.PodSpecTemplate: %v", err)})
		}
		if seen[set.Path] {
			faults = append(faults, Fault{Place: InPodSets, Message: fmt.Sprintf("multiple DeclaredPodSets with path '%s'", set.Path)})
		}
		seen[set.Path] = true
	}
	return faults
}

// compare holds a declaration against what was inferred. Both have at least one pod set.
func compare(declared []awv1beta2.AppWrapperPodSet, sets []inferred) []Fault {
	var faults []Fault
	byPath := make(map[string]awv1beta2.AppWrapperPodSet, len(declared))
	for _, set := range declared {
		byPath[set.Path] = set
	}
	wanted := 0
	for _, set := range sets {
		found, ok := byPath[set.Path]
		switch {
		case !ok && set.optional:
			continue
		case !ok:
			faults = append(faults, Fault{Place: InPodSets, Message: fmt.Sprintf("PodSet with path '%s' is missing", set.Path)})
		case Replicas(found) != Replicas(set.AppWrapperPodSet):
			faults = append(faults, Fault{Place: InPodSets, Message: fmt.Sprintf(
				"replica count %d differs from inferred count %d for PodSet at path position '%s'",
				Replicas(found), Replicas(set.AppWrapperPodSet), set.Path)})
		}
		wanted++
	}
	if len(declared) != wanted {
		count := Fault{Place: InPodSets, Message: fmt.Sprintf("DeclaredPodSet count %d differs from inferred count %d", len(declared), wanted)}
		faults = append([]Fault{count}, faults...)
	}
	return faults
}
