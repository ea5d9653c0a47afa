package v1alpha1

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// fieldSchemas are the types, bounds, enumerations and required fields that users rely on.
var fieldSchemas = map[string]string{
	"spec.resources.catalog.limits":     "object",
	"spec.resources.postgres.requests":  "object",
	"spec.database.volume":              "object",
	"spec.database.external":            "object required=[host secretName]",
	"spec.database.external.host":       "string minLength=1 maxLength=253",
	"spec.database.external.port":       "integer minimum=1 maximum=65535",
	"spec.database.external.secretName": "string minLength=1 maxLength=253",
	"spec.database.external.sslMode":    "string enum=[disable allow prefer require verify-ca verify-full]",
	"spec.access.authenticated":         "string enum=[Enabled Disabled]",
	"spec.proxy.mode":                   "string enum=[Enabled Disabled]",
	"spec.proxy.certificateSecretName":  "string maxLength=253",
	"status.observedGeneration":         "integer",
	"status.conditions":                 "array",
	"status.sources":                    "array",
	"status.sourcesOmitted":             "integer",
}

func readCRDSpec(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../../config/crd/bases/aihub.opendatahub.io_catalogs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out["spec"].(map[string]any)
}

func TestSchemaOfFields(t *testing.T) {
	spec := readCRDSpec(t)
	version := spec["versions"].([]any)[0].(map[string]any)
	if version["name"] != GroupVersion.Version || version["storage"] != true || spec["scope"] != "Namespaced" {
		t.Errorf("unexpected storage version %v or scope %v", version["name"], spec["scope"])
	}
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	if root["required"] != nil || root["properties"].(map[string]any)["spec"].(map[string]any)["required"] != nil {
		t.Error("want spec and all its fields optional")
	}
	for path, want := range fieldSchemas {
		at := root
		for _, step := range strings.Split(path, ".") {
			properties, _ := at["properties"].(map[string]any)
			at, _ = properties[step].(map[string]any)
		}
		if got := summarizeSchema(at); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func summarizeSchema(schema map[string]any) string {
	if schema == nil {
		return ""
	}
	out := []string{fmt.Sprint(schema["type"])}
	for _, key := range []string{"default", "enum", "minimum", "maximum", "minLength", "maxLength", "required"} {
		if value, ok := schema[key]; ok {
			out = append(out, fmt.Sprintf("%s=%v", key, value))
		}
	}
	return strings.Join(out, " ")
}
