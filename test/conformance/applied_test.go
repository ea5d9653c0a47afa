package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// restoredByWebhook lists kinds whose mutating webhook restores an object that was applied as {}.
var restoredByWebhook = []string{"ModelRegistry"}

// Server-side apply stores null for an object that is applied as {} after another field manager has set its children, if all children can
// be the result of defaults. The schema must allow null or have a default, or a webhook must restore the object.
func TestSchemasAllowNullForEmptyObjects(t *testing.T) {
	paths, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("unexpected paths %v, error %v", paths, err)
	}
	found := 0
	for _, path := range paths {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		content, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(content, crd)
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(restoredByWebhook, crd.Spec.Names.Kind) {
			continue
		}
		for _, version := range crd.Spec.Versions {
			visitEmptiable(version.Schema.OpenAPIV3Schema.Properties["spec"], "spec", func(path string, schema apiextensionsv1.JSONSchemaProps) {
				// An MLflow with an empty spec is rejected.
				if found++; !schema.Nullable && schema.Default == nil && (crd.Spec.Names.Kind != "MLflow" || path != "spec") {
					t.Errorf("%s %s: %s has defaults and no required fields, but the schema rejects null: add +nullable", crd.Spec.Names.Kind, version.Name, path)
				}
			})
		}
	}
	if found < 4 {
		t.Errorf("got %d objects, want at least 4", found)
	}
}

// visitEmptiable visits objects without required children that have a child with a default. Lists are not visited, because a field manager
// owns them as a whole or by entries with a key. An empty default, as in references to objects, means that the child is always set.
func visitEmptiable(schema apiextensionsv1.JSONSchemaProps, path string, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	defaulted := false
	for name, child := range schema.Properties {
		defaulted = defaulted || child.Default != nil && string(child.Default.Raw) != `""`
		visitEmptiable(child, path+"."+name, visit)
	}
	if defaulted && len(schema.Required) == 0 {
		visit(path, schema)
	}
}
