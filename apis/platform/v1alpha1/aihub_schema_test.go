package v1alpha1

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func aihubVersion(t *testing.T) (spec, version map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../../config/crd/bases/components.platform.opendatahub.io_aihubs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	spec = out["spec"].(map[string]any)
	return spec, spec["versions"].([]any)[0].(map[string]any)
}

func property(t *testing.T, schema map[string]any, path string) map[string]any {
	t.Helper()
	for _, step := range strings.Split(path, ".") {
		properties, _ := schema["properties"].(map[string]any)
		child, ok := properties[step].(map[string]any)
		if !ok {
			t.Fatalf("%s: no field %s", path, step)
		}
		schema = child
	}
	return schema
}

// The schema is a contract with the platform, which creates the object and reads the status. [modelregistry-103]
func TestSchemaOfAIHub(t *testing.T) {
	spec, version := aihubVersion(t)
	if spec["scope"] != "Cluster" || version["name"] != "v1alpha1" || version["storage"] != true {
		t.Errorf("unexpected scope %v or storage version %v", spec["scope"], version["name"])
	}
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	if fmt.Sprint(root["required"]) != "[spec]" {
		t.Errorf("got required fields %v, want [spec]", root["required"])
	}
	rules := root["x-kubernetes-validations"].([]any)
	if rule := rules[0].(map[string]any); len(rules) != 1 || rule["message"] != "Only the name 'default-aihub' is allowed" || !strings.Contains(rule["rule"].(string), AIHubName) {
		t.Errorf("got rules %v", rules)
	}
	if got := fmt.Sprint(property(t, root, "spec")["required"]); got != "[applicationNamespace instancesNamespace]" {
		t.Errorf("required in spec: %s, want %s", got, "[applicationNamespace instancesNamespace]")
	}
	for path, want := range map[string]map[string]any{
		"status.phase": {"type": "string"}, "status.observedGeneration": {"type": "integer", "format": "int64"},
		"status.conditions": {"type": "array", "x-kubernetes-list-type": "atomic"},
		"status.releases":   {"type": "array", "x-kubernetes-list-type": "map"},
	} {
		for key, value := range want {
			if got := property(t, root, path)[key]; got != value {
				t.Errorf("%s: %s is %v, want %v", path, key, got, value)
			}
		}
	}
	var columns []any
	for _, column := range version["additionalPrinterColumns"].([]any) {
		columns = append(columns, column.(map[string]any)["name"])
	}
	if got := fmt.Sprint(columns); got != "[Ready Reason AppNamespace InstancesNamespace Age Message]" {
		t.Errorf("got columns %s", got)
	}
}

func TestPatternsOfAIHub(t *testing.T) {
	_, version := aihubVersion(t)
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	label := strings.Repeat("d", 63)
	for path, cases := range map[string]map[string]bool{
		"spec.applicationNamespace": {"opendatahub": true, "a": true, "a-b-1": true, "": false, "-a": false, "a-": false, "A": false, "a.b": false, label: true, label + "d": false},
		"spec.instancesNamespace":   {"odh-model-registries": true, "": false, "a_b": false},
		"spec.gateway.domain": {
			"example.com": true, "apps.example.com": true, "a": true, label + ".com": true, label + "d.com": false, "": false, "Example.com": false,
			"https://example.com": false, "example.com:443": false, ".com": false, "a..b": false,
		},
	} {
		schema := property(t, root, path)
		pattern := regexp.MustCompile(schema["pattern"].(string))
		for value, want := range cases {
			length, maxLength := float64(len(value)), schema["maxLength"].(float64)
			minLength, _ := schema["minLength"].(float64)
			if got := pattern.MatchString(value) && length >= minLength && length <= maxLength; got != want {
				t.Errorf("%s: %q accepted: %t, want %t", path, value, got, want)
			}
		}
	}
}
