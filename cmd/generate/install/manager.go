package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// imageValues are the names that the chart gives to the images of servers, by the variables that hold them.
var imageValues = map[string]string{
	"MLFLOW_IMAGE": "mlflow", "REST_IMAGE": "modelRegistry", "KUBE_RBAC_PROXY_IMAGE": "kubeRBACProxy", "OAUTH_PROXY_IMAGE": "oauthProxy",
	"POSTGRES_IMAGE": "postgres", "CATALOG_DATA_IMAGE": "catalogData", "BENCHMARK_DATA_IMAGE": "benchmarkData", "CERT_GENERATOR_IMAGE": "certGenerator",
	"RELATED_IMAGE_ODH_MODELMESH_IMAGE": "modelMesh", "RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE": "modelMeshRESTProxy",
	"RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE": "modelMeshRuntimeAdapter", "RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE": "modelMeshOAuthProxy",
}

// manager is the Deployment of the manager, taken apart.
type manager struct {
	deployment *unstructured.Unstructured
	args       []string
	// fixed variables come from the pod, in the order of the Deployment.
	fixed []any
	// switches turn components on, by their variables.
	switches map[string]string
	// images and settings that the overlay sets, by their variables; namespaced ones default to the namespace of the release.
	images, settings map[string]string
	namespaced       []string
	image            string
	resources        any
	affinity         any
}

func readManager(deployment *unstructured.Unstructured) (*manager, error) {
	m := &manager{deployment: deployment, switches: map[string]string{}, images: map[string]string{}, settings: map[string]string{}}
	container, spec, err := podOf(deployment)
	if err != nil {
		return nil, err
	}
	m.image, _ = container["image"].(string)
	m.resources, m.affinity = container["resources"], spec["affinity"]
	if m.args, _, err = unstructured.NestedStringSlice(container, "args"); err != nil {
		return nil, fmt.Errorf("reading the arguments of the manager: %w", err)
	}
	variables, _, err := unstructured.NestedSlice(container, "env")
	if err != nil {
		return nil, fmt.Errorf("reading the variables of the manager: %w", err)
	}
	for _, v := range variables {
		if err := m.add(v.(map[string]any)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// add sorts a variable by who sets it. One without a value, or with the placeholder of an address, says nothing.
func (m *manager) add(variable map[string]any) error {
	name, _ := variable["name"].(string)
	value, _ := variable["value"].(string)
	component, isSwitch := strings.CutPrefix(name, "ENABLE_")
	_, isImage := imageValues[name]
	switch {
	case variable["valueFrom"] != nil:
		m.fixed = append(m.fixed, variable)
	case isSwitch && (value == "true" || value == "false") && !strings.Contains(component, "_"):
		m.switches[name] = strings.ToLower(component)
	case isImage:
		m.images[name] = value
	case value == "" || value == config.PlaceholderURL:
	case strings.Contains(name, "IMAGE"):
		return fmt.Errorf("variable %s names the image %s, for which the chart has no value: add one to imageValues", name, value)
	case value == namespaceMark:
		m.namespaced = append(m.namespaced, name)
	default:
		m.settings[name] = value
	}
	return nil
}

// podOf returns the container and the pod of the manager.
func podOf(deployment *unstructured.Unstructured) (container, spec map[string]any, err error) {
	spec, _, err = unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the pod of the manager: %w", err)
	}
	containers, _ := spec["containers"].([]any)
	if len(containers) != 1 {
		return nil, nil, fmt.Errorf("the pod of the manager has %d containers, want one", len(containers))
	}
	container, _ = containers[0].(map[string]any)
	return container, spec, nil
}

// marked returns the Deployment with marks where users choose.
func (m *manager) marked() *unstructured.Unstructured {
	out := m.deployment.DeepCopy()
	spec, _, _ := unstructured.NestedMap(out.Object, "spec", "template", "spec") // read before
	container := spec["containers"].([]any)[0].(map[string]any)
	for _, name := range []string{"args", "env", "image", "resources"} {
		container[name] = valueMark + name
	}
	for _, name := range []string{"affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "tolerations"} {
		spec[name] = valueMark + name
	}
	out.Object["spec"].(map[string]any)["replicas"] = valueMark + "replicas"
	out.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"] = spec
	return out
}

// environment writes the helper that renders the variables of the manager.
func (m *manager) environment() (string, error) {
	fixed, err := yaml.Marshal(m.fixed)
	if err != nil {
		return "", fmt.Errorf("encoding variables: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "{{- define \"%s.env\" -}}\n%s", chartName, fixed)
	for _, name := range slices.Sorted(maps.Keys(m.switches)) {
		fmt.Fprintf(&text, "- name: %s\n  value: {{ .Values.components.%s | quote }}\n", name, m.switches[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.images)) {
		fmt.Fprintf(&text, "- name: %s\n  value: {{ .Values.images.%s | quote }}\n", name, imageValues[name])
	}
	text.WriteString("{{- $namespaced := dict }}\n")
	for _, name := range m.namespaced {
		fmt.Fprintf(&text, "{{- $_ := set $namespaced %q .Release.Namespace }}\n", name)
	}
	text.WriteString("{{- range $name, $value := merge (deepCopy .Values.env) $namespaced }}\n- name: {{ $name }}\n  value: {{ $value | quote }}\n{{- end }}\n{{- end }}\n")
	return text.String(), nil
}

// reserved are the variables that other values or the chart set.
func (m *manager) reserved() []string {
	names := append(slices.Collect(maps.Keys(m.switches)), slices.Collect(maps.Keys(m.images))...)
	for _, v := range m.fixed {
		names = append(names, v.(map[string]any)["name"].(string))
	}
	slices.Sort(names)
	return names
}
