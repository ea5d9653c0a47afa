package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const shipped = "../../../config/dashboards"

const small = `
name: small
uid: abc
title: Small
tags: [one]
variables: [{name: namespace, label: Namespace, metric: up}]
rows:
- title: First
  panels:
  - {title: A, type: stat, width: 16, unit: s, queries: [{expr: up}]}
  - {title: B, type: table, width: 16, queries: [{expr: sum(up)}]}
- title: Second
  panels:
  - title: C
    width: 24
    unit: bytes
    stack: true
    description: Words.
    queries: [{expr: a, legend: '{{pod}}'}, {expr: b}]
`

func parsed(t *testing.T, text string) *dashboard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// roundTrip is what a reader of the JSON sees.
func roundTrip(t *testing.T, o object) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at follows keys and indexes.
func at(t *testing.T, in any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			members, ok := in.(map[string]any)
			if !ok {
				t.Fatalf("%v: no object before %s", path, key)
			}
			in = members[key]
		case int:
			items, ok := in.([]any)
			if !ok || key >= len(items) {
				t.Fatalf("%v: no item %d", path, key)
			}
			in = items[key]
		}
	}
	return in
}

func TestGrafana(t *testing.T) {
	got := roundTrip(t, grafana(parsed(t, small)))
	place := func(x, y, w, h float64) map[string]any { return map[string]any{"x": x, "y": y, "w": w, "h": h} }
	for i, want := range []struct {
		kind, title string
		at          map[string]any
	}{
		{"row", "First", place(0, 0, 24, 1)},
		{"stat", "A", place(0, 1, 16, 4)},
		{"table", "B", place(0, 5, 16, 8)},
		{"row", "Second", place(0, 13, 24, 1)},
		{"timeseries", "C", place(0, 14, 24, 8)},
	} {
		p := at(t, got, "panels", i)
		if at(t, p, "type") != want.kind || at(t, p, "title") != want.title || at(t, p, "id") != float64(i+1) || !cmp.Equal(at(t, p, "gridPos"), any(want.at)) {
			t.Errorf("panel %d is %v", i, p)
		}
	}
	last := at(t, got, "panels", 4)
	for _, want := range []struct {
		value any
		path  []any
	}{
		{"bytes", []any{"fieldConfig", "defaults", "unit"}},
		{"normal", []any{"fieldConfig", "defaults", "custom", "stacking", "mode"}},
		{"Words.", []any{"description"}},
		{"a", []any{"targets", 0, "expr"}},
		{"{{pod}}", []any{"targets", 0, "legendFormat"}},
		{"B", []any{"targets", 1, "refId"}},
		{"${datasource}", []any{"targets", 1, "datasource", "uid"}},
		{nil, []any{"targets", 1, "instant"}},
	} {
		if value := at(t, last, want.path...); value != want.value {
			t.Errorf("%v is %v, want %v", want.path, value, want.value)
		}
	}
	if at(t, got, "panels", 2, "targets", 0, "format") != "table" || at(t, got, "panels", 1, "targets", 0, "instant") != true {
		t.Error("a table and a number are about this moment")
	}
	if at(t, got, "templating", "list", 1, "definition") != "label_values(up, namespace)" || at(t, got, "templating", "list", 0, "type") != "datasource" {
		t.Errorf("variables %v", at(t, got, "templating"))
	}
}

func TestConsole(t *testing.T) {
	got := roundTrip(t, console(parsed(t, small)))
	for _, want := range []struct {
		value any
		path  []any
	}{
		{"First", []any{"rows", 0, "title"}},
		{"singlestat", []any{"rows", 0, "panels", 0, "type"}},
		{8.0, []any{"rows", 0, "panels", 0, "span"}},
		{"s", []any{"rows", 0, "panels", 0, "format"}},
		{"table", []any{"rows", 0, "panels", 1, "targets", 0, "format"}},
		{"graph", []any{"rows", 1, "panels", 0, "type"}},
		{"bytes", []any{"rows", 1, "panels", 0, "yaxes", 0, "format"}},
		{true, []any{"rows", 1, "panels", 0, "stack"}},
		{"b", []any{"rows", 1, "panels", 0, "targets", 1, "expr"}},
		{"label_values(up, namespace)", []any{"templating", "list", 0, "query"}},
	} {
		if value := at(t, got, want.path...); value != want.value {
			t.Errorf("%v is %v, want %v", want.path, value, want.value)
		}
	}
	d := parsed(t, small)
	d.Rows[0].Panels[0].Width = 1
	d.Rows[0].Panels[0].Unit = ""
	narrow := at(t, roundTrip(t, console(d)), "rows", 0, "panels", 0)
	if at(t, narrow, "span") != 1.0 || at(t, narrow, "format") != "short" {
		t.Errorf("a narrow panel without a unit: %v", narrow)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"name: a":  "uid",
		"nam: a":   "unknown field",
		"rows: []": "required",
		strings.Replace(small, "type: stat", "type: pie", 1):     `type "pie"`,
		strings.Replace(small, "width: 24", "width: 25", 1):      "width 25",
		strings.Replace(small, "width: 24", "width: 0", 1):       `panel "C" of row "Second"`,
		strings.Replace(small, "[{expr: sum(up)}]", "[]", 1):     "queries are required",
		strings.Replace(small, "{title: B, ", "{title: '', ", 1): "title",
	} {
		path := filepath.Join(t.TempDir(), "source.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngave %v, want %q", text, err, want)
		}
	}
	if _, err := load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file is no error")
	}
	for _, args := range [][]string{nil, {"a", "b"}, {t.TempDir()}} {
		if err := run(args); err == nil {
			t.Errorf("%v is no error", args)
		}
	}
}

// document is a ConfigMap that was written.
type document struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
}

func documents(t *testing.T, path string) []document {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []document
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var d document
		if err := yaml.Unmarshal([]byte(part), &d); err != nil {
			t.Fatal(err)
		}
		if d.Metadata.Name != "" {
			out = append(out, d)
		}
	}
	return out
}

// What is shipped is what the sources say, in both formats, and stands where it is looked for.
func TestShippedDashboards(t *testing.T) {
	folder := t.TempDir()
	for _, sub := range []string{"source", "console"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := filepath.Glob(filepath.Join(shipped, "source", "*.yaml"))
	if err != nil || len(sources) != 2 {
		t.Fatalf("%v, %v", sources, err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "source", filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{folder}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct{ namespace, label, value string }{
		"grafana.yaml":         {"system", "grafana_dashboard", "1"},
		"console/console.yaml": {"openshift-config-managed", "console.openshift.io/dashboard", "true"},
	} {
		made := documents(t, filepath.Join(folder, file))
		if difference := cmp.Diff(made, documents(t, filepath.Join(shipped, file))); difference != "" || len(made) != 2 {
			t.Errorf("%s is stale, run make generate: %s", file, difference)
		}
		for _, d := range made {
			if d.Metadata.Namespace != want.namespace || d.Metadata.Labels[want.label] != want.value || len(d.Data) != 1 {
				t.Errorf("%s: %s stands in %s with %v", file, d.Metadata.Name, d.Metadata.Namespace, d.Metadata.Labels)
			}
		}
	}
}

// Links of clusters lead to the dashboard of ModelMesh by its uid.
func TestUIDs(t *testing.T) {
	var uids []string
	for _, name := range []string{"manager", "modelmesh"} {
		d, err := load(filepath.Join(shipped, "source", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		uids = append(uids, d.UID+" "+d.Title)
	}
	if !slices.Equal(uids, []string{"odh-platform-operator ODH Platform Operator", "vMm_rt-7z-new ModelMesh Dashboard"}) {
		t.Errorf("%q", uids)
	}
}
