package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is a value of the chart.
type value struct {
	name, comment string
	defaultValue  any
	// schema is the JSON Schema of the value without a description.
	schema map[string]any
}

// object returns a closed object schema.
func object(fields map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": fields, "additionalProperties": false}
}

func (m *manager) values(s *sources) []value {
	components, componentSchemas := map[string]any{}, map[string]any{}
	for _, c := range s.components {
		components[c], componentSchemas[c] = c != monitoring, map[string]any{"type": "boolean"}
	}
	images, imageSchemas := map[string]any{}, map[string]any{}
	for variable, image := range m.images {
		images[imageValues[variable]], imageSchemas[imageValues[variable]] = image, map[string]any{"type": "string"}
	}
	list, text, anyObject := map[string]any{"type": "array"}, map[string]any{"type": "string"}, map[string]any{"type": "object"}
	return []value{
		{"image", "Image of the manager.", m.container.Image, map[string]any{"type": "string", "minLength": 1}},
		{"imagePullSecrets", "Secrets with which the image of the manager is pulled, such as {name: pull}.", []any{}, list},
		{"replicas", "Replicas of the manager. One of them reconciles; all of them answer webhooks.", 2, map[string]any{"type": "integer", "minimum": 0}},
		{"components", "Components to enable. A disabled component has no roles and no webhooks; its custom resources stay. mlflowaccess and platform only add " +
			"permissions; monitoring requires the Prometheus operator.", components, object(componentSchemas)},
		{"crds", "Install the CRDs. They stay when the release is uninstalled.", true, map[string]any{"type": "boolean"}},
		{"images", "Images of the servers that the operator starts. Empty: the default of the operator.", images, object(imageSchemas)},
		{"env", "Additional settings, as the variables in docs/configuration.md. " + strings.Join(m.namespaced, ", ") + ": the namespace of the release.", m.settings, map[string]any{
			"type": "object", "additionalProperties": text,
			"propertyNames": map[string]any{"not": map[string]any{"enum": m.reserved()}},
		}},
		{"extraArgs", "Additional flags of the manager.", []any{}, map[string]any{"type": "array", "items": text}},
		{"resources", "Resources of the manager.", m.container.Resources, anyObject},
		{"topologySpreadConstraints", "Spread of its pods. By default, replicas are spread across nodes and zones, if there are several.", m.spread, list},
		{"affinity", "Affinity of its pods.", map[string]any{}, anyObject},
		{"nodeSelector", "Nodes on which its pods can run.", map[string]any{}, anyObject},
		{"tolerations", "Taints that its pods tolerate.", []any{}, list},
		{"priorityClassName", "Priority class of its pods.", "", text},
	}
}

func valuesFile(values []value) (string, error) {
	var out strings.Builder
	for _, v := range values {
		text, err := yaml.Marshal(map[string]any{v.name: v.defaultValue})
		if err != nil {
			return "", fmt.Errorf("encoding value %s: %w", v.name, err)
		}
		fmt.Fprintf(&out, "# %s\n%s\n", v.comment, text)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// schemaFile returns a schema that rejects unknown values. It allows global, because a parent chart passes its global values.
func schemaFile(values []value) (string, error) {
	fields := map[string]any{"global": map[string]any{"type": "object"}}
	for _, v := range values {
		v.schema["description"] = v.comment
		fields[v.name] = v.schema
	}
	schema := object(fields)
	schema["$schema"], schema["title"] = "http://json-schema.org/draft-07/schema#", "Values of the chart "+chartName
	text, err := json.MarshalIndent(schema, "", "  ")
	return string(text) + "\n", err
}

// table returns the table of values for the README.
func table(values []value) string {
	var out strings.Builder
	out.WriteString("| Value | Meaning |\n|---|---|\n")
	for _, v := range values {
		name := "`" + v.name + "`"
		if fields, ok := v.schema["properties"].(map[string]any); ok {
			var names []string
			for field := range fields {
				names = append(names, "`"+v.name+"."+field+"`")
			}
			slices.Sort(names)
			name = strings.Join(names, ", ")
		}
		fmt.Fprintf(&out, "| %s | %s |\n", name, v.comment)
	}
	return out.String()
}
