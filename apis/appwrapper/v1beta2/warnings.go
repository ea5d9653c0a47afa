package v1beta2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

var workloadAnnotations = []string{
	AnnotationAdmissionGrace, AnnotationWarmupGrace, AnnotationFailureGrace, AnnotationRetryPause, AnnotationRetryLimit,
	AnnotationForcefulDeletion, AnnotationDeletionOnFailure, AnnotationSuccessTTL, AnnotationTerminalExitCodes,
	AnnotationRetryableExitCodes,
}

var podSetAnnotations = []string{AnnotationPodIndexLabel, AnnotationSubGroupIndexLabel, AnnotationSubGroupCount}

// Warnings returns a sentence for each annotation under AnnotationPrefix that has no effect where it stands: misspelt ones,
// and those on a component, which nothing reads. The order does not vary.
func Warnings(aw *AppWrapper) []string {
	warnings := strangers("metadata.annotations", aw.Annotations, workloadAnnotations)
	for i, component := range aw.Spec.Components {
		place := fmt.Sprintf("spec.components[%d]", i)
		for _, key := range slices.Sorted(maps.Keys(component.Annotations)) {
			if strings.HasPrefix(key, AnnotationPrefix) {
				warnings = append(warnings, fmt.Sprintf(
					"%s.annotations: %q has no effect on a component: set it in the metadata of the AppWrapper", place, key))
			}
		}
		for j, set := range component.PodSets {
			warnings = append(warnings, strangers(fmt.Sprintf("%s.podSets[%d].annotations", place, j), set.Annotations, podSetAnnotations)...)
		}
	}
	return warnings
}

// strangers warns of the keys under our prefix that are none of the known ones.
func strangers(place string, annotations map[string]string, known []string) []string {
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, AnnotationPrefix) || slices.Contains(known, key) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return edits(key, a) - edits(key, b) })
		cure := "remove it"
		if edits(key, nearest) <= 3 {
			cure = fmt.Sprintf("write %q", nearest)
		}
		warnings = append(warnings, fmt.Sprintf("%s: %q is not known and has no effect: %s", place, key, cure))
	}
	return warnings
}

// edits is the number of bytes to add, drop or replace to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
