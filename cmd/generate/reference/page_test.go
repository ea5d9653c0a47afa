package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	bases   = "../../../config/crd/bases"
	samples = "../../../config/samples"
	docs    = "../../../docs/reference"
)

func shippedCRDs(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := readCRDs(bases)
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

// The pages in the checkout equal the generated ones.
func TestPagesAreFresh(t *testing.T) {
	examples, err := readExamples(samples)
	if err != nil {
		t.Fatal(err)
	}
	want := pages(shippedCRDs(t), examples)
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil || string(have) != string(text) {
			t.Errorf("docs/reference/%s is stale (%v): run make generate", name, err)
		}
	}
	existing, err := filepath.Glob(filepath.Join(docs, "*"))
	if err != nil || len(existing) != len(want) {
		t.Errorf("docs/reference has %d pages (%v), want %d: remove pages without a group", len(existing), err, len(want))
	}
}

// Each property of a CRD has a row, or belongs to a field with a Kubernetes type.
func TestEveryFieldHasARow(t *testing.T) {
	total, found := 0, map[string]bool{}
	for _, crd := range shippedCRDs(t) {
		for _, version := range crd.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				schema, ok := version.Schema.OpenAPIV3Schema.Properties[part]
				if !ok {
					continue
				}
				listed, collapsed := map[string]bool{}, []string{}
				for _, l := range fields(part, &schema) {
					listed[l.path] = true
					if name := l.path[strings.LastIndex(l.path, ".")+1:]; kubernetesTypes[name].typ != "" && strings.HasSuffix(l.typ, kubernetesTypes[name].typ) {
						collapsed, found[name] = append(collapsed, l.path), true
					}
				}
				total += len(listed)
				for _, path := range properties(part, &schema) {
					hidden := slices.ContainsFunc(collapsed, func(parent string) bool { return len(path) > len(parent) && strings.HasPrefix(path, parent) })
					if !listed[path] && !hidden {
						t.Errorf("%s %s does not contain %s", crd.Name, version.Name, path)
					}
				}
			}
		}
	}
	if total < 350 {
		t.Errorf("got %d fields, want at least 350", total)
	}
	for name := range kubernetesTypes {
		if !found[name] {
			t.Errorf("no CRD has a field %s of type %s: remove it from kubernetesTypes", name, kubernetesTypes[name].typ)
		}
	}
}

// properties returns all paths, independently of the generator.
func properties(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema.Items != nil && schema.Items.Schema != nil {
		return properties(path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return properties(path+"{}", schema.AdditionalProperties.Schema)
	}
	var all []string
	for name, property := range schema.Properties {
		all = append(append(all, path+"."+name), properties(path+"."+name, &property)...)
	}
	return all
}

// A field that only has the name of a Kubernetes field is expanded.
func TestKubernetesTypeOf(t *testing.T) {
	with := func(name string) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{name: {Type: "string"}}}
	}
	if got := kubernetesTypeOf("resources", with("requests")); got != "ResourceRequirements" {
		t.Errorf("got %q, want %q", got, "ResourceRequirements")
	}
	if got := kubernetesTypeOf("resources", with("database")); got != "" {
		t.Errorf("got %q for other properties, want none", got)
	}
	if got := kubernetesTypeOf("anything", with("requests")); got != "" {
		t.Errorf("got %q for another name, want none", got)
	}
}

func TestFields(t *testing.T) {
	one, hundred := 1.0, int64(100)
	schema := &apiextensionsv1.JSONSchemaProps{
		Required: []string{"size"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size": {Type: "integer", Minimum: &one, Default: &apiextensionsv1.JSON{Raw: []byte("2")}, Description: "size of it"},
			"mode": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}, Pattern: "a|b", MaxLength: &hundred},
			"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"inner": {XIntOrString: true}},
			}}, XListMapKeys: []string{"inner"}},
			"byName": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
			"env": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"valueFrom": {}},
			}}},
			"when": {Type: "string", Format: "date-time", XValidations: apiextensionsv1.ValidationRules{{Rule: "self != ''"}, {Rule: "x", Message: "must be x"}}},
			"free": {},
		},
	}
	want := []row{
		{path: "spec.byName", typ: "map of strings"},
		{path: "spec.env", typ: "list of EnvVar"},
		{path: "spec.free", typ: "any"},
		{path: "spec.list", typ: "list of objects", rules: []string{"one item for each inner"}},
		{path: "spec.list[].inner", typ: "quantity or number"},
		{path: "spec.mode", typ: "string", rules: []string{"one of `a`, `b`", "at most 100 characters", "matches `a|b`"}},
		{path: "spec.size", requiredMark: `\*`, typ: "integer", defaultValue: "2", description: "size of it", rules: []string{"at least 1"}},
		{path: "spec.when", typ: "time", rules: []string{"`self != ''`", "must be x"}},
	}
	got := fields("spec", schema)
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i].path != want[i].path || got[i].requiredMark != want[i].requiredMark || got[i].typ != want[i].typ || got[i].defaultValue != want[i].defaultValue ||
			got[i].description != want[i].description || !slices.Equal(got[i].rules, want[i].rules) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func TestCell(t *testing.T) {
	if got, want := cell("a <b>\n  | c"), `a &lt;b> \| c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if code("") != "" || code("a|b") != "`a\\|b`" {
		t.Error("want code to escape table cells and to keep an empty text empty")
	}
}

func TestRun(t *testing.T) {
	if run(nil) == nil || run([]string{t.TempDir(), samples, t.TempDir()}) == nil {
		t.Error("want errors for missing arguments and for a folder without CRDs")
	}
	if run([]string{bases, samples, filepath.Join(t.TempDir(), "missing")}) == nil {
		t.Error("want an error for a page that cannot be written")
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "a.yaml"), []byte("kind: CustomResourceDefinition\nspecs: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if run([]string{broken, samples, t.TempDir()}) == nil {
		t.Error("want an error for a file without a CustomResourceDefinition")
	}
	target := t.TempDir()
	if err := run([]string{bases, samples, target}); err != nil {
		t.Fatal(err)
	}
	if written, err := filepath.Glob(filepath.Join(target, "*.md")); err != nil || len(written) != 8 {
		t.Errorf("%d pages, %v: want one for each group and an index", len(written), err)
	}
}
