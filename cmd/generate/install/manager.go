package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// imageValues maps the environment variables of images to the fields of the chart value images.
var imageValues = map[string]string{
	"MLFLOW_IMAGE": "mlflow", "REST_IMAGE": "modelRegistry", "KUBE_RBAC_PROXY_IMAGE": "kubeRBACProxy", "OAUTH_PROXY_IMAGE": "oauthProxy",
	"POSTGRES_IMAGE": "postgres", "CATALOG_DATA_IMAGE": "catalogData", "BENCHMARK_DATA_IMAGE": "benchmarkData", "CERT_GENERATOR_IMAGE": "certGenerator",
	"RELATED_IMAGE_ODH_MODELMESH_IMAGE": "modelMesh", "RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE": "modelMeshRESTProxy",
	"RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE": "modelMeshRuntimeAdapter", "RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE": "modelMeshOAuthProxy",
}

// manager is the Deployment of the manager, with its variables by their purpose.
type manager struct {
	deployment *unstructured.Unstructured
	container  corev1.Container
	spread     []corev1.TopologySpreadConstraint
	// fixed are the variables with valueFrom, in the order of the Deployment.
	fixed []corev1.EnvVar
	// switches maps the variables that enable a component to the component.
	switches map[string]string
	// images and settings map variables to their values in the overlay. Variables in namespaced default to the namespace of the release.
	images, settings map[string]string
	namespaced       []string
}

func readManager(deployment *unstructured.Unstructured) (*manager, error) {
	var typed appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &typed); err != nil {
		return nil, fmt.Errorf("reading the Deployment of the manager: %w", err)
	}
	pod := typed.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		return nil, fmt.Errorf("the pod of the manager has %d containers, want one", len(pod.Containers))
	}
	m := &manager{
		deployment: deployment, container: pod.Containers[0], spread: pod.TopologySpreadConstraints,
		switches: map[string]string{}, images: map[string]string{}, settings: map[string]string{},
	}
	for _, v := range m.container.Env {
		if err := m.add(v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// add adds a variable to the field for its purpose. It skips settings without a value or with a placeholder URL.
func (m *manager) add(v corev1.EnvVar) error {
	component, isSwitch := strings.CutPrefix(v.Name, "ENABLE_")
	_, isImage := imageValues[v.Name]
	switch {
	case v.ValueFrom != nil:
		m.fixed = append(m.fixed, v)
	case isSwitch && (v.Value == "true" || v.Value == "false") && !strings.Contains(component, "_"):
		m.switches[v.Name] = strings.ToLower(component)
	case isImage:
		m.images[v.Name] = v.Value
	case v.Value == "" || v.Value == config.PlaceholderURL:
	case strings.Contains(v.Name, "IMAGE"):
		return fmt.Errorf("variable %s names the image %s, for which the chart has no value: add one to imageValues", v.Name, v.Value)
	case v.Value == namespacePlaceholder:
		m.namespaced = append(m.namespaced, v.Name)
	default:
		m.settings[v.Name] = v.Value
	}
	return nil
}

// podOf returns the container and the pod spec of the Deployment. They are not copied.
func podOf(deployment *unstructured.Unstructured) (container, pod map[string]any) {
	pod = nested.Map(deployment.Object, "spec", "template", "spec")
	return nested.Map(pod, "containers", "0"), pod
}

// withPlaceholders returns the Deployment with placeholders for values.
func (m *manager) withPlaceholders() *unstructured.Unstructured {
	out := m.deployment.DeepCopy()
	container, pod := podOf(out)
	for _, name := range []string{"args", "env", "image", "resources"} {
		container[name] = valuePlaceholder + name
	}
	for _, name := range []string{"affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "tolerations", "topologySpreadConstraints"} {
		pod[name] = valuePlaceholder + name
	}
	nested.Map(out.Object, "spec")["replicas"] = valuePlaceholder + "replicas"
	return out
}

// environment returns the helper template of the manager's variables.
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

// reserved returns the variables that other values or the chart set.
func (m *manager) reserved() []string {
	names := append(slices.Collect(maps.Keys(m.switches)), slices.Collect(maps.Keys(m.images))...)
	for _, v := range m.fixed {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}
