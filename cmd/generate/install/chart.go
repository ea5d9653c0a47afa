package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const chartName = "odh-platform-operator"

// valuePlaceholder is the prefix of placeholders for values in the Deployment.
const valuePlaceholder = "value-of-"

//go:embed chart/NOTES.txt
var notes string

//go:embed chart/README.md
var readme string

// newChart returns the files of a chart from the copied manifests. With its default values, it renders the objects of
// config/overlays/kubernetes, except the Namespace and the ConfigMap of parameters.
func newChart(config, version string) (map[string]string, error) {
	overlay, err := readSources(config)
	if err != nil {
		return nil, err
	}
	mgr, err := readManager(overlay.deployment)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"templates/NOTES.txt": notes}
	for group, objects := range overlay.groups {
		if files["templates/"+group+".yaml"], err = template(group, objects); err != nil {
			return nil, err
		}
	}
	if files["templates/deployment.yaml"], err = mgr.template(); err != nil {
		return nil, err
	}
	if files["templates/_env.tpl"], err = mgr.environment(); err != nil {
		return nil, err
	}
	values := mgr.values(overlay)
	if files["values.yaml"], err = valuesFile(values); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = schemaFile(values); err != nil {
		return nil, err
	}
	files["README.md"] = readme + table(values)
	files["Chart.yaml"], err = chartFile(version)
	return files, err
}

// chartFile returns Chart.yaml. The required version of Kubernetes equals that of the bundle.
func chartFile(version string) (string, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "type": "application", "name": chartName, "version": version, "appVersion": version, "kubeVersion": ">=1.30.0-0",
		"description": "One operator for MLflow, Model Registry, Model Catalog, ModelMesh, Ray clusters and AppWrappers",
		"home":        "https://github.com/odh-platform/odh-platform-operator",
		"sources":     []string{"https://github.com/odh-platform/odh-platform-operator"},
		"keywords":    []string{"mlflow", "model registry", "modelmesh", "ray", "appwrapper", "open data hub"},
		"annotations": map[string]string{"licenses": "Apache-2.0"},
	})
	return string(text), err
}

// template returns the template of a group. A value can disable each group but managerGroup.
func template(group string, objects []*unstructured.Unstructured) (string, error) {
	var text strings.Builder
	switch group {
	case managerGroup:
	case crdGroup:
		fmt.Fprintln(&text, "{{- if .Values.crds }}")
	default:
		fmt.Fprintf(&text, "{{- if .Values.components.%s }}\n", group)
	}
	for _, o := range objects {
		if group == crdGroup {
			// Deleting a CRD deletes its custom resources, so it is kept when the release is uninstalled.
			o = o.DeepCopy()
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["helm.sh/resource-policy"] = "keep"
			o.SetAnnotations(annotations)
		}
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(&text, "---\n%s", escapeTemplate(string(document)))
	}
	if group != managerGroup {
		fmt.Fprintln(&text, "{{- end }}")
	}
	return text.String(), nil
}

// escapeTemplate escapes Helm syntax and replaces the placeholder by the namespace of the release, quoted if it is a whole value.
func escapeTemplate(text string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	text = strings.ReplaceAll(text, ": "+namespacePlaceholder+"\n", ": {{ .Release.Namespace | quote }}\n")
	return strings.ReplaceAll(text, namespacePlaceholder, "{{ .Release.Namespace }}")
}

// placeholderLine matches a line of the Deployment with a placeholder for its value.
var placeholderLine = regexp.MustCompile(`(?m)^( *(?:- )?)([A-Za-z]+): ` + valuePlaceholder + `([A-Za-z]+)\n`)

// template returns the Deployment with values instead of placeholders.
func (m *manager) template() (string, error) {
	document, err := yaml.Marshal(m.withPlaceholders().Object)
	if err != nil {
		return "", fmt.Errorf("encoding the Deployment: %w", err)
	}
	text := placeholderLine.ReplaceAllStringFunc(escapeTemplate(string(document)), func(line string) string {
		parts := placeholderLine.FindStringSubmatch(line)
		indent, key, value := parts[1], parts[2], parts[3]
		childIndent := len(indent) + 2
		switch value {
		case "env":
			return fmt.Sprintf("%s%s: {{- include \"%s.env\" . | nindent %d }}\n", indent, key, chartName, childIndent)
		case "args":
			return fmt.Sprintf("%s%s: {{- toYaml (concat (list \"%s\") .Values.extraArgs) | nindent %d }}\n", indent, key, strings.Join(m.container.Args, `" "`), childIndent)
		case "image", "replicas":
			return fmt.Sprintf("%s%s: {{ toYaml .Values.%s }}\n", indent, key, value)
		default:
			return fmt.Sprintf("%s{{- with .Values.%s }}\n%s%s: {{- toYaml . | nindent %d }}\n%s{{- end }}\n", indent, value, indent, key, childIndent, indent)
		}
	})
	if strings.Contains(text, valuePlaceholder) {
		return "", fmt.Errorf("a value of the Deployment has no template: %s", text)
	}
	return text, nil
}
