package modelcatalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// tree parses YAML without its layout.
func tree(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// [modelregistry-96] [modelregistry-94] Only the legacy default entry is removed; order, numbers, comments and unknown keys are kept.
// [modelregistry-129]
func TestWithoutLegacyDefault(t *testing.T) {
	for name, c := range map[string]struct{ given, want string }{
		"only the default entry": {
			"catalogs:\n- name: Default\n  id: default_catalog\n  type: yaml\n", "catalogs: []\n"},
		"no such entry":  {"catalogs:\n- name: Mine\n  id: mine\n", ""},
		"an empty list":  {"catalogs: []\n", ""},
		"no value":       {"catalogs:\n", ""},
		"empty":          {"", ""},
		"a comment only": {"# nothing yet\n", ""},
		"null":           {"null\n", ""},
		"only other lists": {
			"mcp_catalogs:\n- id: default_catalog\nagent_catalogs:\n- id: default_catalog\n", ""},
		"of runtimes": {"serving_runtime_catalogs:\n- id: default_catalog\n", ""},
		"in the namespace of runtimes": {
			"catalogs:\n- id: default_catalog\nserving_runtime_catalogs:\n- id: r\n", "catalogs: []\nserving_runtime_catalogs:\n- id: r\n"},
		"labels and queries": {"labels:\n- name: a\nnamedQueries:\n  q: {x: {operator: '=', value: 1}}\n", ""},
		"in the older list": {
			"model_catalogs:\n- id: default_catalog\n- id: mine\n", "model_catalogs:\n- id: mine\n"},
		"in both lists": {
			"catalogs:\n- id: default_catalog\nmodel_catalogs:\n- id: default_catalog\n- id: b\n", "catalogs: []\nmodel_catalogs:\n- id: b\n"},
		"between others": {
			"catalogs:\n- {id: c, name: C}\n- {id: default_catalog}\n- {id: a, name: A}\n- {id: b, name: B}\n",
			"catalogs:\n- {id: c, name: C}\n- {id: a, name: A}\n- {id: b, name: B}\n"},
		"with and without labels": {
			"catalogs:\n- id: a\n  labels: [x, y]\n- id: default_catalog\n  labels: [z]\n- id: b\n",
			"catalogs:\n- id: a\n  labels: [x, y]\n- id: b\n"},
		"numbers in properties": {
			"catalogs:\n- id: a\n  properties: {limit: 10, ratio: 1.50, size: '010'}\n- id: default_catalog\n",
			"catalogs:\n- id: a\n  properties: {limit: 10, ratio: 1.50, size: '010'}\n"},
		"all lists together": {
			"catalogs:\n- id: a\n- id: default_catalog\nmodel_catalogs:\n- id: b\nmcp_catalogs:\n- id: m\nagent_catalogs:\n- id: g\nlabels:\n- name: l\n",
			"catalogs:\n- id: a\nmodel_catalogs:\n- id: b\nmcp_catalogs:\n- id: m\nagent_catalogs:\n- id: g\nlabels:\n- name: l\n"},
		"keys of a newer server": {
			"catalogs:\n- id: a\n  includedModels: [x]\n- id: default_catalog\nfuture: {a: 1}\n",
			"catalogs:\n- id: a\n  includedModels: [x]\nfuture: {a: 1}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withoutLegacyDefault(c.given)
			if err != nil {
				t.Fatal(err)
			}
			if (got == "") != (c.want == "") {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(tree(t, c.want), tree(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := withoutLegacyDefault(got); again != "" || err != nil {
				t.Errorf("a second look finds %q, %v", again, err)
			}
		})
	}
}

func TestCommentsAndStyleArePreserved(t *testing.T) {
	given := "# ours\ncatalogs:\n  - id: default_catalog\n  # the good one\n  - id: \"mine\"\n    properties:\n      size: 0x1F\n      ratio: 1.50\n"
	got, err := withoutLegacyDefault(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# ours", "# the good one", `"mine"`, "0x1F", "1.50"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is lost in\n%s", part, got)
		}
	}
}

// [modelregistry-95] Invalid sources are not changed, and the reason is logged.
func TestInvalidSourcesAreNotChanged(t *testing.T) {
	for name, c := range map[string]struct{ given, want string }{
		"no YAML":             {"catalogs: [", "not valid YAML"},
		"tabs":                {"catalogs:\n\t- id: x", "not valid YAML"},
		"a list":              {"- id: default_catalog\n", "must be a map"},
		"a word":              {"catalogs", "must be a map"},
		"catalogs is a map":   {"catalogs: {id: default_catalog}\n", "catalogs must be a list"},
		"models is a word":    {"catalogs: []\nmodel_catalogs: x\n", "model_catalogs must be a list"},
		"two documents":       {"catalogs: []\n---\ncatalogs: []\n", "more than one YAML document"},
		"a user refers to it": {"catalogs:\n- &d\n  id: default_catalog\nmcp_catalogs:\n- *d\n", "cannot be removed"},
	} {
		if got, err := withoutLegacyDefault(c.given); got != "" || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, error %v, want error %q", name, got, err, c.want)
		}
	}
}

func FuzzWithoutFormerDefault(f *testing.F) {
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
			t.Errorf("the result %q is not clean: %q, %v", got, again, err)
		}
	})
}
