package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// restored are kinds whose mutating webhook restores an applied {}.
var restored = []string{"ModelRegistry"}

// Server-side apply leaves null in place of an object applied as {} after another manager had set its children. It does so if all children
// may have been set by defaults. The schema must allow that null, or replace it by a default, or a webhook must.
func TestAppliedObjectsMayBecomeNull(t *testing.T) {
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
		if slices.Contains(restored, crd.Spec.Names.Kind) {
			continue
		}
		for _, version := range crd.Spec.Versions {
			eachEmptied(version.Schema.OpenAPIV3Schema.Properties["spec"], "spec", func(path string, schema apiextensionsv1.JSONSchemaProps) {
				// An MLflow with an empty spec is refused.
				if found++; !schema.Nullable && schema.Default == nil && (crd.Spec.Names.Kind != "MLflow" || path != "spec") {
					t.Errorf("%s %s: %s has defaults only, and null is refused: mark it +nullable", crd.Spec.Names.Kind, version.Name, path)
				}
			})
		}
	}
	if found < 4 {
		t.Errorf("only %d objects", found)
	}
}

// eachEmptied visits objects that can be applied as {} and have children with defaults. Lists are owned as a whole or by entries with a key;
// an empty default, as in references to objects, means that the child is always set.
func eachEmptied(schema apiextensionsv1.JSONSchemaProps, path string, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	defaulted := false
	for name, child := range schema.Properties {
		defaulted = defaulted || child.Default != nil && string(child.Default.Raw) != `""`
		eachEmptied(child, path+"."+name, visit)
	}
	if defaulted && len(schema.Required) == 0 {
		visit(path, schema)
	}
}
