package podset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Check validates the declared pod sets of a component with the given path. It returns the number of pod sets, and whether it is known.
//
// Each declared path must be unique and refer to a pod template. For kinds with checksDeclared, the declaration must have the paths and
// replicas of the inferred pod sets, and may omit optional ones. For other kinds any declaration is accepted.
func Check(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured, path *field.Path) (count int, known bool, errs field.ErrorList) {
	errs = checkDeclared(declared, u, path.Child("podSets"))
	if r, ok := ruleOf(u); ok && !r.checksDeclared && len(declared) > 0 {
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

// checkDeclared validates each declared pod set, and that paths are unique.
func checkDeclared(declared []awv1beta2.AppWrapperPodSet, u *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seenPaths := map[string]bool{}
	for i, set := range declared {
		setPath := path.Index(i)
		if set.Replicas != nil && *set.Replicas < 0 {
			errs = append(errs, field.Invalid(setPath.Child("replicas"), *set.Replicas, "replicas must be 0 or more"))
		}
		if set.Path == "" {
			errs = append(errs, field.Required(setPath.Child("path"), "podspec must specify path"))
			continue
		}
		if err := CheckTemplate(u.Object, set.Path); err != nil {
			errs = append(errs, field.Invalid(setPath.Child("path"), set.Path, fmt.Sprintf("path does not refer to a v1.PodSpecTemplate: %v: write a path such as template.spec.template", err)))
		}
		if seenPaths[set.Path] {
			errs = append(errs, field.Invalid(path, len(declared), fmt.Sprintf("multiple DeclaredPodSets with path '%s': remove all but one", set.Path)))
		}
		seenPaths[set.Path] = true
	}
	return errs
}

// compareInferred compares declared and inferred pod sets. Neither may be empty.
func compareInferred(declared []awv1beta2.AppWrapperPodSet, sets []inferredPodSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	reject := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, len(declared), fmt.Sprintf(format, args...)))
	}
	byPath := make(map[string]awv1beta2.AppWrapperPodSet, len(declared))
	for _, set := range declared {
		byPath[set.Path] = set
	}
	expected := len(slices.DeleteFunc(slices.Clone(sets), func(set inferredPodSet) bool { return set.optional && byPath[set.Path].Path == "" }))
	if len(declared) != expected {
		reject("DeclaredPodSet count %d differs from inferred count %d: declare all of them, or remove podSets", len(declared), expected)
	}
	for _, set := range sets {
		declaredSet, ok := byPath[set.Path]
		switch {
		case !ok && set.optional:
		case !ok:
			reject("PodSet with path '%s' is missing: add it", set.Path)
		case Replicas(declaredSet) != Replicas(set.AppWrapperPodSet):
			reject("replica count %d differs from inferred count %d for PodSet at path position '%s': correct replicas", Replicas(declaredSet), Replicas(set.AppWrapperPodSet), set.Path)
		}
	}
	return errs
}
