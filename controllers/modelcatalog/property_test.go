package modelcatalog

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
)

var drawCandidates = rapid.Custom(func(t *rapid.T) sourceCandidate {
	return sourceCandidate{
		name:           rapid.StringMatching(`[a-z][a-z0-9.-]{0,70}`).Draw(t, "name"),
		hasKey:         rapid.Bool().Draw(t, "hasKey"),
		contentProblem: rapid.SampledFrom([]string{"", "it is empty"}).Draw(t, "problem"),
	}
})

// For any ConfigMaps, the mounted ones are sorted, limited and valid, and do not depend on the order of the ConfigMaps. The status contains
// or counts every ConfigMap, and only mounted ones are Accepted.
func TestSelectSourcesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(drawCandidates, 0, 130, func(c sourceCandidate) string { return c.name }).Draw(t, "all")
		mayAdd := rapid.Bool().Draw(t, "mayAdd")
		current := []string{}
		for _, c := range all {
			if rapid.Bool().Draw(t, "current") {
				current = append(current, c.name)
			}
		}
		selection := selectSources(slices.Clone(all), current, func() bool { return mayAdd })
		if !slices.IsSorted(selection.mounted) || len(selection.mounted) > maxSources {
			t.Fatalf("mounted %v", selection.mounted)
		}
		if len(selection.statuses) > maxReportedSources || len(selection.statuses)+int(selection.omitted) != len(all) {
			t.Fatalf("%d reported, %d omitted of %d", len(selection.statuses), selection.omitted, len(all))
		}
		accepted := 0
		for _, s := range selection.statuses {
			if s.State == aihubv1alpha1.SourceAccepted {
				accepted++
				if !slices.Contains(selection.mounted, s.Name) {
					t.Fatalf("source %s is Accepted, but not mounted", s.Name)
				}
			}
		}
		if selection.omitted == 0 && accepted != len(selection.mounted) {
			t.Fatalf("%d accepted, %d mounted", accepted, len(selection.mounted))
		}
		for _, name := range selection.mounted {
			if len(name) > maxSourceNameLength || strings.Contains(name, ".") || !mayAdd && !slices.Contains(current, name) {
				t.Fatalf("source %s is mounted", name)
			}
		}
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		if other := selectSources(slices.Clone(shuffled), current, func() bool { return mayAdd }); !slices.Equal(other.mounted, selection.mounted) {
			t.Fatalf("the result depends on the order: got %v and %v", other.mounted, selection.mounted)
		}
	})
}
