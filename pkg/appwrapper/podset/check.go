package podset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Check compares the declared pod sets of a component with its object; the path is that of the component. The first result is the number
// of pod sets, the second whether it is known.
//
// Every declared path has to be there once and to lead to a pod template. For the kinds whose pod sets the operator that we
// replace could infer, the declaration has to name each of them with the same number of replicas, and no other. For all
// other kinds it is taken as it is.
func Check(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured, path *field.Path) (count int, known bool, errs field.ErrorList) {
	errs = checkDeclared(declared, u, path.Child("podSets"))
	if r, has := ruleOf(u); has && !r.checksDeclared && len(declared) > 0 {
		return len(declared), true, errs
	}
	sets, err := infer(u)
	if err != nil {
		return len(declared), false, append(errs, field.Invalid(path.Child("template"), u.GroupVersionKind().GroupKind().String(),
			fmt.Sprintf("error inferring PodSets: %v", err)))
	}
	if len(declared) > 0 && len(sets) > 0 {
		errs = append(errs, compareInferred(declared, sets, path.Child("podSets"))...)
	}
	return max(len(declared), len(sets)), true, errs
}

// checkEach looks at every declared pod set by itself, and for paths that stand there twice.
func checkDeclared(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, set := range declared {
		at := path.Index(i)
		if set.Replicas != nil && *set.Replicas < 0 {
			errs = append(errs, field.Invalid(at.Child("replicas"), *set.Replicas, "replicas must be 0 or more"))
		}
		if set.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), "podspec must specify path"))
			continue
		}
		if err := CheckTemplate(u.Object, set.Path); err != nil {
			errs = append(errs, field.Invalid(at.Child("path"), set.Path, fmt.Sprintf("path does not refer to a v1.PodSpecTemplate: %v", err)))
		}
		if seen[set.Path] {
			errs = append(errs, field.Invalid(path, len(declared), fmt.Sprintf("multiple DeclaredPodSets with path '%s'", set.Path)))
		}
		seen[set.Path] = true
	}
	return errs
}

// compare holds a declaration against what was inferred. Both have at least one pod set.
func compareInferred(declared []awv1beta2.AppWrapperPodSet, sets []inferredPodSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, len(declared), fmt.Sprintf(format, args...)))
	}
	byPath := make(map[string]awv1beta2.AppWrapperPodSet, len(declared))
	for _, set := range declared {
		byPath[set.Path] = set
	}
	wanted := len(slices.DeleteFunc(slices.Clone(sets), func(set inferredPodSet) bool { return set.optional && byPath[set.Path].Path == "" }))
	if len(declared) != wanted {
		refuse("DeclaredPodSet count %d differs from inferred count %d", len(declared), wanted)
	}
	for _, set := range sets {
		found, ok := byPath[set.Path]
		switch {
		case !ok && set.optional:
		case !ok:
			refuse("PodSet with path '%s' is missing", set.Path)
		case Replicas(found) != Replicas(set.AppWrapperPodSet):
			refuse("replica count %d differs from inferred count %d for PodSet at path position '%s'", Replicas(found), Replicas(set.AppWrapperPodSet), set.Path)
		}
	}
	return errs
}
