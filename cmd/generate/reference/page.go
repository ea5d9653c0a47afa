package main

import (
	"bytes"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	generatedNote = "<!-- Written by cmd/generate/reference from config/crd/bases; change the types in apis and run make generate. -->\n"
	indexHead     = generatedNote + "# Custom resources\n\n" +
		"Every field, with its type, its default and the rules that the API server enforces. `kubectl explain` shows the same text.\n" +
		"RayCluster is KubeRay's; ServingRuntime, ClusterServingRuntime and InferenceService are KServe's: their projects document them.\n\n" +
		"| Kind | Group | Versions | Scope |\n|---|---|---|---|\n"
	groupHead = generatedNote + "# %s\n\n" +
		"In column \"Field\" `[]` stands for the items of a list and `{}` for the values of a map. A star marks a field that\n" +
		"must be set if its parent is set. Types of Kubernetes have only their names here: see\n[the API reference of Kubernetes](https://kubernetes.io/docs/reference/kubernetes-api/).\n"
)

func indexLine(crd apiextensionsv1.CustomResourceDefinition) string {
	var versions []string
	for _, v := range crd.Spec.Versions {
		text := v.Name
		if v.Storage && len(crd.Spec.Versions) > 1 {
			text += " (stored)"
		}
		versions = append(versions, text)
	}
	return fmt.Sprintf("| [%s](%s.md#%s) | `%s` | %s | %s |", crd.Spec.Names.Kind, crd.Spec.Group, anchor(crd.Spec.Names.Kind, crd.Spec.Versions[0].Name),
		crd.Spec.Group, strings.Join(versions, ", "), crd.Spec.Scope)
}

// anchor returns the anchor of the heading of a version.
func anchor(kind, version string) string { return strings.ToLower(kind) + "-" + version }

// writeKind writes a chapter for each version of a kind.
func writeKind(page *bytes.Buffer, crd apiextensionsv1.CustomResourceDefinition, examples map[string]string) {
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(page, "\n## %s %s\n\n%s\n\n", crd.Spec.Names.Kind, version.Name, oneLine(schema.Description))
		fmt.Fprintf(page, "%s\n", facts(crd, version))
		for _, rule := range schema.XValidations {
			fmt.Fprintf(page, "- Rule: %s\n", ruleText(rule))
		}
		if example := examples[crd.Spec.Group+"/"+version.Name+" "+crd.Spec.Names.Kind]; example != "" {
			fmt.Fprintf(page, "\n```yaml\n%s\n```\n", example)
		}
		for _, part := range []string{"spec", "status"} {
			if property, ok := schema.Properties[part]; ok {
				writeTable(page, part, &property)
			}
		}
	}
}

// facts returns a list of properties of a version.
func facts(crd apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) string {
	names := crd.Spec.Names
	lines := []string{fmt.Sprintf("- %s, `kubectl get %s`", crd.Spec.Scope, strings.Join(append([]string{names.Plural}, names.ShortNames...), "`, `kubectl get "))}
	if version.Storage && len(crd.Spec.Versions) > 1 {
		lines = append(lines, "- The version in which objects are stored.")
	}
	if version.Deprecated {
		lines = append(lines, "- Deprecated.")
	}
	if version.Subresources != nil && version.Subresources.Status != nil {
		lines = append(lines, "- The status is a subresource.")
	}
	var columns []string
	for _, c := range version.AdditionalPrinterColumns {
		columns = append(columns, fmt.Sprintf("%s (`%s`)", c.Name, c.JSONPath))
	}
	if len(columns) > 0 {
		lines = append(lines, "- Columns: "+strings.Join(columns, ", "))
	}
	return strings.Join(lines, "\n")
}

func writeTable(page *bytes.Buffer, part string, schema *apiextensionsv1.JSONSchemaProps) {
	fmt.Fprintf(page, "\n### %s\n\n", part)
	if schema.Description != "" {
		fmt.Fprintf(page, "%s\n\n", oneLine(schema.Description))
	}
	if rules := rulesOf(schema); len(rules) > 0 {
		fmt.Fprintf(page, "- %s\n\n", strings.Join(rules, "\n- "))
	}
	rows := fields(part, schema)
	if len(rows) == 0 {
		fmt.Fprintln(page, "No fields.")
		return
	}
	var single []row
	var groups [][]row
	for n := 1; len(rows) > 0; rows, n = rows[n:], 1 {
		for n < len(rows) && rows[n].isBelow(rows[0]) {
			n++
		}
		if n == 1 {
			single = append(single, rows[0])
		} else {
			groups = append(groups, rows[:n])
		}
	}
	writeRows(page, single)
	for _, group := range groups {
		fmt.Fprintf(page, "\n#### %s\n\n", group[0].path)
		writeRows(page, group)
	}
}

func writeRows(page *bytes.Buffer, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(page, "| Field | Type | Default | Rules | Meaning |\n|---|---|---|---|---|\n")
	for _, f := range rows {
		fmt.Fprintf(page, "| `%s`%s | %s | %s | %s | %s |\n", f.path, f.requiredMark, f.typ, code(f.defaultValue), cell(strings.Join(f.rules, "; ")), cell(f.description))
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell escapes a text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(oneLine(text))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
