package takeover

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// parseYAML returns the values of a YAML document.
func parseYAML(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("parsing YAML: %v\n%s", err, text)
	}
	return v
}

// [modelregistry-94] [modelregistry-96] [modelregistry-129] Only the legacy default entry is removed. Order, numbers and other keys stay.
func TestWithoutLegacyDefault(t *testing.T) {
	for name, test := range map[string]struct{ sources, want string }{
		"only the default entry": {
			"catalogs:\n- name: Default\n  id: default_catalog\n  type: yaml\n", "catalogs: []\n"},
		"no such entry":  {"catalogs:\n- name: Mine\n  id: mine\n", ""},
		"empty list":     {"catalogs: []\n", ""},
		"no value":       {"catalogs:\n", ""},
		"empty":          {"", ""},
		"only a comment": {"# nothing yet\n", ""},
		"null":           {"null\n", ""},
		"only other lists": {
			"mcp_catalogs:\n- id: default_catalog\nagent_catalogs:\n- id: default_catalog\n", ""},
		"list of runtimes": {"serving_runtime_catalogs:\n- id: default_catalog\n", ""},
		"list of runtimes is kept": {
			"catalogs:\n- id: default_catalog\nserving_runtime_catalogs:\n- id: r\n", "catalogs: []\nserving_runtime_catalogs:\n- id: r\n"},
		"labels and queries": {"labels:\n- name: a\nnamedQueries:\n  q: {x: {operator: '=', value: 1}}\n", ""},
		"section model_catalogs": {
			"model_catalogs:\n- id: default_catalog\n- id: mine\n", "model_catalogs:\n- id: mine\n"},
		"both sections": {
			"catalogs:\n- id: default_catalog\nmodel_catalogs:\n- id: default_catalog\n- id: b\n", "catalogs: []\nmodel_catalogs:\n- id: b\n"},
		"entry between others": {
			"catalogs:\n- {id: c, name: C}\n- {id: default_catalog}\n- {id: a, name: A}\n- {id: b, name: B}\n",
			"catalogs:\n- {id: c, name: C}\n- {id: a, name: A}\n- {id: b, name: B}\n"},
		"entries with and without labels": {
			"catalogs:\n- id: a\n  labels: [x, y]\n- id: default_catalog\n  labels: [z]\n- id: b\n",
			"catalogs:\n- id: a\n  labels: [x, y]\n- id: b\n"},
		"numbers in properties": {
			"catalogs:\n- id: a\n  properties: {limit: 10, ratio: 1.50, size: '010'}\n- id: default_catalog\n",
			"catalogs:\n- id: a\n  properties: {limit: 10, ratio: 1.50, size: '010'}\n"},
		"all sections": {
			"catalogs:\n- id: a\n- id: default_catalog\nmodel_catalogs:\n- id: b\nmcp_catalogs:\n- id: m\nagent_catalogs:\n- id: g\nlabels:\n- name: l\n",
			"catalogs:\n- id: a\nmodel_catalogs:\n- id: b\nmcp_catalogs:\n- id: m\nagent_catalogs:\n- id: g\nlabels:\n- name: l\n"},
		"keys of a newer server": {
			"catalogs:\n- id: a\n  includedModels: [x]\n- id: default_catalog\nfuture: {a: 1}\n",
			"catalogs:\n- id: a\n  includedModels: [x]\nfuture: {a: 1}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withoutLegacyDefault(test.sources)
			if err != nil {
				t.Fatal(err)
			}
			if (got == "") != (test.want == "") {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(parseYAML(t, test.want), parseYAML(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := withoutLegacyDefault(got); again != "" || err != nil {
				t.Errorf("the second removal returned %q, error %v, want no change", again, err)
			}
		})
	}
}

func TestCommentsAndStyleArePreserved(t *testing.T) {
	sources := "# ours\ncatalogs:\n  - id: default_catalog\n  # the good one\n  - id: \"mine\"\n    properties:\n      size: 0x1F\n      ratio: 1.50\n"
	got, err := withoutLegacyDefault(sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# ours", "# the good one", `"mine"`, "0x1F", "1.50"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q was removed from\n%s", part, got)
		}
	}
}

// [modelregistry-95] Invalid sources are not changed, and the error contains the reason.
func TestInvalidSourcesAreNotChanged(t *testing.T) {
	for name, test := range map[string]struct{ sources, want string }{
		"invalid YAML":               {"catalogs: [", "not valid YAML"},
		"tabs":                       {"catalogs:\n\t- id: x", "not valid YAML"},
		"list":                       {"- id: default_catalog\n", "must be a map"},
		"string":                     {"catalogs", "must be a map"},
		"catalogs is a map":          {"catalogs: {id: default_catalog}\n", "catalogs must be a list"},
		"model_catalogs is a string": {"catalogs: []\nmodel_catalogs: x\n", "model_catalogs must be a list"},
		"two documents":              {"catalogs: []\n---\ncatalogs: []\n", "more than one YAML document"},
		"alias of the entry":         {"catalogs:\n- &d\n  id: default_catalog\nmcp_catalogs:\n- *d\n", "cannot be removed"},
	} {
		if got, err := withoutLegacyDefault(test.sources); got != "" || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %q, error %v, want error %q", name, got, err, test.want)
		}
	}
}

func FuzzWithoutLegacyDefault(f *testing.F) {
	f.Add("catalogs:\n- id: default_catalog\n- id: a\n")
	f.Add("catalogs: &a [*a]")
	f.Add("? {}\n: - id: default_catalog")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := withoutLegacyDefault(text)
		if err != nil && got != "" {
			t.Error("got a result and an error")
		}
		if got == "" {
			return
		}
		if again, err := withoutLegacyDefault(got); err != nil || again != "" {
			t.Errorf("the removal from the result %q returned %q, error %v, want no change", got, again, err)
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
		for _, section := range []string{"catalogs", "model_catalogs"} {
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
