package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// withoutEffect are the fields of a runtime without effect on pods of ModelMesh. Add new fields of KServe here or to the view.
var withoutEffect = []string{"hostIPC", "supportedModelFormats[0].priority", "workerSpec"}

// [UP-F6] The view keeps each field of KServe's schema of runtimes, including those of containers and volumes, or reports it as
// ineffective.
func TestRuntimeViewKeepsOrReportsFields(t *testing.T) {
	for kind, schema := range schemas(t, v1alpha1.KindServingRuntime, v1alpha1.KindClusterServingRuntime) {
		full, _ := fullValue(schema.Properties["spec"]).(map[string]any)
		raw, err := json.Marshal(map[string]any{"spec": full})
		if err != nil {
			t.Fatal(err)
		}
		runtime := &v1alpha1.ServingRuntime{}
		if err := json.Unmarshal(raw, runtime); err != nil || runtime.Malformed != "" {
			t.Fatalf("%s: unexpected error %v or malformed fields %s", kind, err, runtime.Malformed)
		}
		if diff := cmp.Diff(withoutEffect, droppedFields(t, full, runtime.Spec)); diff != "" {
			t.Errorf("%s: unexpected dropped fields (-want +got):\n%s", kind, diff)
		}
		slices.Sort(runtime.Spec.Ignored)
		if diff := cmp.Diff(withoutEffect, runtime.Spec.Ignored); diff != "" {
			t.Errorf("%s: unexpected reported fields (-want +got):\n%s", kind, diff)
		}
	}
}

// keptServiceFields are the fields of an InferenceService that its view keeps. The view reports all others.
var keptServiceFields = []string{
	"explainer.timeout", "predictor.lightgbm", "predictor.model", "predictor.onnx", "predictor.pmml", "predictor.pytorch", "predictor.sklearn",
	"predictor.tensorflow", "predictor.timeout", "predictor.triton", "predictor.xgboost", "transformer.timeout",
}

// [UP-F6] The view reports each field of KServe's schema of InferenceServices that it drops.
func TestInferenceServiceViewKeepsOrReportsFields(t *testing.T) {
	schema := schemas(t, v1beta1.KindInferenceService)[v1beta1.KindInferenceService]
	var kept []string
	for part, fields := range schema.Properties["spec"].Properties {
		for name, field := range fields.Properties {
			spec := map[string]any{part: map[string]any{name: fullValue(field)}}
			raw, err := json.Marshal(map[string]any{"spec": spec, "metadata": map[string]any{"annotations": map[string]any{
				v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh,
			}}})
			if err != nil {
				t.Fatal(err)
			}
			service := &v1beta1.InferenceService{}
			if err := json.Unmarshal(raw, service); err != nil {
				t.Fatal(err)
			}
			dropped := droppedFields(t, spec, service.Spec)
			if path := part + "." + name; !slices.Contains(dropped, path) {
				kept = append(kept, path)
			}
			reported := 0
			for _, path := range dropped {
				if slices.Contains(service.Ignored, "spec."+path) {
					reported++
				}
			}
			if reported != min(len(dropped), 10) || len(service.Ignored) != reported { // the list is limited
				t.Errorf("dropped %q, but reported %q", dropped, service.Ignored)
			}
		}
	}
	slices.Sort(kept)
	if diff := cmp.Diff(keptServiceFields, kept); diff != "" {
		t.Errorf("unexpected kept fields (-want +got):\n%s", diff)
	}
}

// schemas returns the schemas of KServe's kinds, by kind.
func schemas(t *testing.T, kinds ...string) map[string]*apiextensionsv1.JSONSchemaProps {
	t.Helper()
	crds, err := cluster.ReadSet(t.Context(), cluster.KServe)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, crd := range crds {
		if slices.Contains(kinds, crd.Spec.Names.Kind) {
			found[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	if len(found) != len(kinds) {
		t.Fatalf("got schemas of %d kinds, want %v", len(found), kinds)
	}
	return found
}

// fullValue returns a value in which all fields of a schema are set. None is a zero value, which serialization could omit.
func fullValue(schema apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.XIntOrString:
		return "1"
	case schema.Type == "integer" || schema.Type == "number":
		return 1
	case schema.Type == "boolean":
		return true
	case schema.Type == "string":
		return "x"
	case schema.Type == "array":
		return []any{fullValue(*schema.Items.Schema)}
	case schema.AdditionalProperties != nil:
		return map[string]any{"x": fullValue(*schema.AdditionalProperties.Schema)}
	}
	all := map[string]any{}
	for name, child := range schema.Properties {
		all[name] = fullValue(child)
	}
	return all
}

// droppedFields returns the fields of a document that its view drops.
func droppedFields(t *testing.T, full map[string]any, view any) []string {
	t.Helper()
	raw, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var written map[string]any
	if err := json.Unmarshal(raw, &written); err != nil {
		t.Fatal(err)
	}
	paths := missing("", full, written)
	slices.Sort(paths)
	return paths
}

// missing returns the paths in whole that part lacks.
func missing(path string, whole, part any) []string {
	var paths []string
	switch w := whole.(type) {
	case map[string]any:
		p, _ := part.(map[string]any)
		for key, value := range w {
			at := key
			if path != "" {
				at = path + "." + key
			}
			if found, ok := p[key]; ok {
				paths = append(paths, missing(at, value, found)...)
			} else {
				paths = append(paths, at)
			}
		}
	case []any:
		p, _ := part.([]any)
		for i := range w {
			at := fmt.Sprintf("%s[%d]", path, i)
			if i < len(p) {
				paths = append(paths, missing(at, w[i], p[i])...)
			} else {
				paths = append(paths, at)
			}
		}
	}
	return paths
}
