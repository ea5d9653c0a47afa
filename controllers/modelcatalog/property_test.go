package modelcatalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

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

// [modelregistry-96] The removal of the legacy default entry keeps all other entries unchanged and in order.
func TestRemovalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sections := map[string][]string{}
		document := map[string]any{}
		for _, section := range []string{"catalogs", "model_catalogs", "mcp_catalogs", "agent_catalogs", "serving_runtime_catalogs"} {
			ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", legacyDefaultEntry, "c"}), 0, 6).Draw(t, section)
			entries := []any{}
			for i, id := range ids {
				entries = append(entries, map[string]any{
					"id": id, "name": fmt.Sprintf("%s %d", id, i), "enabled": rapid.Bool().Draw(t, "enabled"),
					"properties": map[string]any{"n": rapid.IntRange(-5, 1<<40).Draw(t, "n"), "s": rapid.StringMatching(`[ -~äß]{0,20}`).Draw(t, "s")},
				})
			}
			sections[section], document[section] = ids, entries
		}
		text, err := yaml.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		got, err := withoutLegacyDefault(string(text))
		if err != nil {
			t.Fatal(err)
		}
		has := slices.Contains(sections["catalogs"], legacyDefaultEntry) || slices.Contains(sections["model_catalogs"], legacyDefaultEntry)
		if has != (got != "") {
			t.Fatalf("got result %q for sources with a default entry: %t", got, has)
		}
		if !has {
			return
		}
		for _, section := range modelSections {
			entries, _ := document[section].([]any)
			document[section] = slices.DeleteFunc(entries, func(e any) bool { return e.(map[string]any)["id"] == legacyDefaultEntry })
		}
		want, err := yaml.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		var left, right any
		if yaml.Unmarshal(want, &left) != nil || yaml.Unmarshal([]byte(got), &right) != nil || fmt.Sprint(left) != fmt.Sprint(right) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}
