package podset

import (
	"regexp"
	"strings"
	"testing"
)

// [appwrapper-28] The eight malformed paths into a JobSet, and all other invalid paths.
func TestTemplateAtRejects(t *testing.T) {
	u := object(t, jobSet)
	for _, test := range []struct{ name, path, want string }{
		{"map access on an array", "template.spec.replicatedJobs.template", "at path position 'template.spec.replicatedJobs' non-map value"},
		{"the array itself", "template.spec.replicatedJobs", "at path position 'template.spec.replicatedJobs' non-map value"},
		{"array access on a map", "template.spec[0]", "at path position 'template.spec' found non-array value"},
		{"index 10", "template.spec.replicatedJobs[10].template", "at path position 'template.spec.replicatedJobs' out of bounds index '10'"},
		{"index -1", "template.spec.replicatedJobs[-1].template", "at path position 'template.spec.replicatedJobs' out of bounds index '-1'"},
		{"index a10", "template.spec.replicatedJobs[a10].template", "at path position 'template.spec.replicatedJobs' invalid index expression 'a10'"},
		{"unterminated", "template.spec.replicatedJobs[1", "at path position 'template.spec.replicatedJobs' invalid array index '[1'"},
		{"two brackets", "template.spec.replicatedJobs[1]].template", "at path position 'template.spec.replicatedJobs[1]' invalid path element '].template'"},
		{"empty", "", "first element of the path must be 'template'"},
		{"another start", "spec.replicatedJobs", "first element of the path must be 'template'"},
		{"upper case", "Template.spec", "first element of the path must be 'template'"},
		{"longer first word", "templates.spec", "at path position 'template' invalid path element 's.spec'"},
		{"missing field", "template.spec.jobs[0]", "at path position 'template.spec' missing field 'jobs'"},
		{"empty field", "template..spec", "at path position 'template' missing field ''"},
		{"trailing dot", "template.spec.", "at path position 'template.spec' missing field ''"},
		{"field of a text", "template.kind.name", "at path position 'template.kind' non-map value"},
		{"a text", "template.kind", "at path position 'template.kind' non-map value"},
		{"element of the object", "template[0]", "at path position 'template' found non-array value"},
		{"no index", "template.spec.replicatedJobs[]", "at path position 'template.spec.replicatedJobs' invalid index expression ''"},
		{"huge index", "template.spec.replicatedJobs[99999999999999999999]", "at path position 'template.spec.replicatedJobs' invalid index expression '99999999999999999999'"},
		{"quoted field", `template.metadata["name"]`, `at path position 'template.metadata' invalid index expression '"name"'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if at, err := TemplateAt(u.Object, test.path); err == nil || err.Error() != test.want {
				t.Errorf("got %v and %v, want the error %q", at, err, test.want)
			}
		})
	}
}

func TestTemplateAt(t *testing.T) {
	u := object(t, jobSet)
	for path, want := range map[string]string{
		"template":                                  "kind",
		"template.metadata":                         "name",
		"template.spec.replicatedJobs[0]":           "replicas",
		"template.spec.replicatedJobs[1].template":  "spec",
		"template.spec.replicatedJobs[01].template": "spec",
		"template.spec.replicatedJobs[1].template.spec.template.spec.containers[0]": "image",
	} {
		if at, err := TemplateAt(u.Object, path); err != nil || at[want] == nil {
			t.Errorf("TemplateAt(%s) = %v, error %v, want a map with %s", path, at, err, want)
		}
	}
	at, err := TemplateAt(u.Object, "template.metadata")
	if err != nil {
		t.Fatal(err)
	}
	at["name"] = "changed"
	if u.GetName() != "changed" {
		t.Error("want the result to alias the object, not a copy")
	}
}

var shapes = regexp.MustCompile(`(?s)^(first element of the path must be 'template'` +
	`|at path position 'template.*' (invalid array index '\[.*'|invalid index expression '.*'|found non-array value` +
	`|out of bounds index '-?\d+'|non-map value|missing field '.*'|invalid path element '.+'))$`)

// Any path results in a map or a known error, and never in a panic.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"", "template", "template.spec.replicatedJobs[1].template", "template.spec.replicatedJobs[-1]", "template[", "template.]", "template..", "template.spec[0]]", "template.a\n"} {
		f.Add(path, []byte(`{"spec":{"replicatedJobs":[{"template":{"spec":{}}},null,[[{}]]]}}`))
	}
	f.Fuzz(func(t *testing.T, path string, raw []byte) {
		u, err := Decode(component(t, `{apiVersion: v1, kind: X}`))
		if err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = anyJSON(raw)
		at, err := TemplateAt(u.Object, path)
		if (err == nil) != (at != nil) && err != nil {
			t.Fatalf("%q gives %v and %v", path, at, err)
		}
		if err != nil && !shapes.MatchString(err.Error()) {
			t.Fatalf("%q gives the error %q", path, err)
		}
		if err == nil && !strings.HasPrefix(path, Root) {
			t.Fatalf("%q was followed", path)
		}
		if err := CheckTemplate(u.Object, path); err == nil && at == nil {
			t.Fatalf("%q has a template and leads nowhere", path)
		}
		UnknownFields(u.Object, path)
	})
}
