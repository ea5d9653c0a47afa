package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// layout is the page without the tables of settings and legacy flags.
//
//go:embed page.txt
var layout string

func page(docs []config.SettingDoc) string {
	var settings, legacy strings.Builder
	for _, table := range tables {
		fmt.Fprintf(&settings, "\n## %s\n\n| Flag | Environment | File | Default | Meaning |\n|---|---|---|---|---|\n", table.title)
		for _, setting := range docs {
			if titleOf(setting) == table.title {
				fmt.Fprintln(&settings, row(setting))
			}
		}
	}
	flags := config.LegacyFlags()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(&legacy, "| `--%s` | `--%s` |\n", name, flags[name])
	}
	return fmt.Sprintf(layout, settings.String(), legacy.String())
}

// tables are selected by the first part of a key or flag. The table without sections holds all other settings.
var tables = []struct {
	title    string
	sections []string
}{
	{"Components", []string{"components", "enable"}},
	{"Process", nil},
	{"Listeners", []string{"metrics", "health", "webhook"}},
	{"Authors of custom resources", []string{"admission"}},
	{"Publication", []string{"exposure"}},
	{"Logging", []string{"logging"}},
	{"MLflow", []string{"mlflow"}},
	{"Model Registry", []string{"modelregistry"}},
	{"Model Catalog", []string{"modelcatalog"}},
	{"ModelMesh", []string{"modelmesh"}},
	{"RayCluster", []string{"raycluster"}},
	{"AppWrapper", []string{"appwrapper"}},
}

// titleOf returns the title of the table of a setting.
func titleOf(setting config.SettingDoc) string {
	flag, _, _ := strings.Cut(setting.Flag, "-")
	section, _, _ := strings.Cut(setting.Key, ".")
	for _, table := range tables {
		if slices.Contains(table.sections, cmp.Or(section, flag)) {
			return table.title
		}
	}
	return "Process"
}

func row(setting config.SettingDoc) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", code(dashed(setting.Flag)), code(setting.Env...), code(setting.Key), code(normalizeTempDir(setting.Default)), cell(setting.Help))
}

func dashed(flag string) string {
	if flag == "" {
		return ""
	}
	return "--" + flag
}

// normalizeTempDir replaces the temporary directory in a default, so that the page does not depend on the machine.
func normalizeTempDir(text string) string {
	if rest, ok := strings.CutPrefix(text, strings.TrimSuffix(os.TempDir(), "/")); ok && strings.HasPrefix(rest, "/") {
		return "/tmp" + rest
	}
	return text
}

// code formats non-empty texts as code.
func code(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, "`"+text+"`")
		}
	}
	return strings.Join(all, ", ")
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
