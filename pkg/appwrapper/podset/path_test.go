package podset

import (
	"regexp"
	"strings"
	"testing"
)

// [appwrapper-28] The error of an invalid path names the last valid position.
func TestTemplateAtRejects(t *testing.T) {
	u := parseObject(t, jobSet)
	for _, test := range []struct{ name, path, want string }{
		{"map access on an array", "template.spec.replicatedJobs.template", "at path position 'template.spec.replicatedJobs' non-map value"},
		{"path to an array", "template.spec.replicatedJobs", "at path position 'template.spec.replicatedJobs' non-map value"},
		{"array access on a map", "template.spec[0]", "at path position 'template.spec' found non-array value"},
		{"index 10", "template.spec.replicatedJobs[10].template", "at path position 'template.spec.replicatedJobs' out of bounds index '10'"},
		{"index -1", "template.spec.replicatedJobs[-1].template", "at path position 'template.spec.replicatedJobs' out of bounds index '-1'"},
		{"index a10", "template.spec.replicatedJobs[a10].template", "at path position 'template.spec.replicatedJobs' invalid index expression 'a10'"},
		{"missing closing bracket", "template.spec.replicatedJobs[1", "at path position 'template.spec.replicatedJobs' invalid array index '[1'"},
		{"two closing brackets", "template.spec.replicatedJobs[1]].template", "at path position 'template.spec.replicatedJobs[1]' invalid path element '].template'"},
		{"empty path", "", "first element of the path must be 'template'"},
		{"other first word", "spec.replicatedJobs", "first element of the path must be 'template'"},
		{"upper case", "Template.spec", "first element of the path must be 'template'"},
		{"longer first word", "templates.spec", "at path position 'template' invalid path element 's.spec'"},
		{"missing field", "template.spec.jobs[0]", "at path position 'template.spec' missing field 'jobs'"},
		{"empty field", "template..spec", "at path position 'template' missing field ''"},
		{"trailing dot", "template.spec.", "at path position 'template.spec' missing field ''"},
		{"field of a string", "template.kind.name", "at path position 'template.kind' non-map value"},
		{"path to a string", "template.kind", "at path position 'template.kind' non-map value"},
		{"index of the object", "template[0]", "at path position 'template' found non-array value"},
		{"empty index", "template.spec.replicatedJobs[]", "at path position 'template.spec.replicatedJobs' invalid index expression ''"},
		{"index above int64", "template.spec.replicatedJobs[99999999999999999999]", "at path position 'template.spec.replicatedJobs' invalid index expression '99999999999999999999'"},
		{"quoted field", `template.metadata["name"]`, `at path position 'template.metadata' invalid index expression '"name"'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if template, err := TemplateAt(u.Object, test.path); err == nil || err.Error() != test.want {
				t.Errorf("got %v, error %v, want error %q", template, err, test.want)
			}
		})
	}
}

func TestTemplateAt(t *testing.T) {
	u := parseObject(t, jobSet)
	for path, want := range map[string]string{
		"template":                                  "kind",
		"template.metadata":                         "name",
		"template.spec.replicatedJobs[0]":           "replicas",
		"template.spec.replicatedJobs[1].template":  "spec",
		"template.spec.replicatedJobs[01].template": "spec",
		"template.spec.replicatedJobs[1].template.spec.template.spec.containers[0]": "image",
	} {
		if template, err := TemplateAt(u.Object, path); err != nil || template[want] == nil {
			t.Errorf("%s: got %v, error %v, want a map with %s", path, template, err, want)
		}
	}
	template, err := TemplateAt(u.Object, "template.metadata")
	if err != nil {
		t.Fatal(err)
	}
	template["name"] = "changed"
	if u.GetName() != "changed" {
		t.Error("got a copy, want a part of the object")
	}
}

// pathErrors matches all errors of TemplateAt.
var pathErrors = regexp.MustCompile(`(?s)^(first element of the path must be 'template'` +
	`|at path position 'template.*' (invalid array index '\[.*'|invalid index expression '.*'|found non-array value` +
	`|out of bounds index '-?\d+'|non-map value|missing field '.*'|invalid path element '.+'))$`)

// TemplateAt returns a map or a known error for any path, and does not panic.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"", "template", "template.spec.replicatedJobs[0].template", "template.spec.replicatedJobs[2]", "template.spec.replicatedJobs[1].template", "template.spec.replicatedJobs[-1]", "template[", "template.]", "template..", "template.spec[0]]", "template.a\n"} {
		f.Add(path, []byte(`{"replicatedJobs":[{"template":{"spec":{}}},null,[[{}]]]}`))
	}
	f.Fuzz(func(t *testing.T, path string, raw []byte) {
		u, err := Decode(newComponent(t, `{apiVersion: v1, kind: X}`))
		if err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = anyJSON(raw)
		template, err := TemplateAt(u.Object, path)
		if (err == nil) != (template != nil) {
			t.Fatalf("%q: got %v and error %v, want only one of them", path, template, err)
		}
		if err != nil && !pathErrors.MatchString(err.Error()) {
			t.Fatalf("%q: got unknown error %q", path, err)
		}
		if err == nil && !strings.HasPrefix(path, Root) {
			t.Fatalf("%q: got no error for another first word", path)
		}
		if err := CheckTemplate(u.Object, path); err == nil && template == nil {
			t.Fatalf("%q: CheckTemplate accepts a path without a map", path)
		}
		UnknownFields(u.Object, path)
	})
}
