package appwrapper

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

var workloadAnnotations = []string{
	v1beta2.AnnotationAdmissionGrace, v1beta2.AnnotationWarmupGrace, v1beta2.AnnotationFailureGrace, v1beta2.AnnotationRetryPause, v1beta2.AnnotationRetryLimit,
	v1beta2.AnnotationForcefulDeletion, v1beta2.AnnotationDeletionOnFailure, v1beta2.AnnotationSuccessTTL, v1beta2.AnnotationTerminalExitCodes,
	v1beta2.AnnotationRetryableExitCodes,
}

var podSetAnnotations = []string{v1beta2.AnnotationPodIndexLabel, v1beta2.AnnotationSubGroupIndexLabel, v1beta2.AnnotationSubGroupCount}

// ineffectiveAnnotations returns a warning for each annotation that is unknown, has an invalid value, or has no effect on a component. The
// order is stable.
func ineffectiveAnnotations(aw *v1beta2.AppWrapper) []string {
	warnings := unknownAnnotations("metadata.annotations", aw.Annotations, workloadAnnotations)
	for _, key := range slices.Sorted(maps.Keys(aw.Annotations)) {
		if problem := valueProblem(key, aw.Annotations[key]); problem != "" {
			warnings = append(warnings, fmt.Sprintf("metadata.annotations: %q is %q, %s", key, aw.Annotations[key], problem))
		}
	}
	for i, component := range aw.Spec.Components {
		path := fmt.Sprintf("spec.components[%d]", i)
		for _, key := range slices.Sorted(maps.Keys(component.Annotations)) {
			if strings.HasPrefix(key, v1beta2.AnnotationPrefix) {
				warnings = append(warnings, fmt.Sprintf(
					"%s.annotations: %q has no effect on a component: set it in the metadata of the AppWrapper", path, key))
			}
		}
		for j, set := range component.PodSets {
			warnings = append(warnings, unknownAnnotations(fmt.Sprintf("%s.podSets[%d].annotations", path, j), set.Annotations, podSetAnnotations)...)
		}
	}
	return warnings
}

// valueProblem returns the error in the value of an annotation, with its effect and the expected value, or "" for a valid value.
func valueProblem(key, value string) string {
	switch {
	case key == names.PausedAnnotation:
		if _, valid := names.Paused(map[string]string{key: value}); !valid {
			return "which is neither true nor false and has no effect: set it to true, or remove it"
		}
	case key == v1beta2.AnnotationRetryLimit:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return "which is invalid, so the configured limit applies: write a whole number such as 3"
		}
	case key == v1beta2.AnnotationTerminalExitCodes, key == v1beta2.AnnotationRetryableExitCodes:
		for entry := range strings.SplitSeq(value, ",") {
			entry = strings.TrimSpace(entry)
			if _, err := strconv.ParseInt(entry, 10, 32); err != nil && entry != "" {
				return fmt.Sprintf("of which %q is invalid: write whole numbers, separated by commas, such as 1,137", entry)
			}
		}
	case slices.Contains(workloadAnnotations, key):
		switch period, err := time.ParseDuration(value); {
		case err != nil:
			return "which is invalid and has no effect: write a duration such as 90s or 1h30m"
		case period <= 0 && key == v1beta2.AnnotationSuccessTTL:
			return "which is invalid, so the configured period applies: write a duration above 0 such as 90s or 1h30m"
		case period < 0:
			return "which is treated as 0: write a duration such as 90s or 1h30m"
		}
	}
	return ""
}

// unknownAnnotations returns a warning for each unknown key with AnnotationPrefix.
func unknownAnnotations(path string, annotations map[string]string, known []string) []string {
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, v1beta2.AnnotationPrefix) || slices.Contains(known, key) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return names.EditDistance(key, a) - names.EditDistance(key, b) })
		advice := "remove it"
		if names.EditDistance(key, nearest) <= 3 {
			advice = fmt.Sprintf("write %q", nearest)
		}
		warnings = append(warnings, fmt.Sprintf("%s: %q is not known and has no effect: %s", path, key, advice))
	}
	return warnings
}
