package models

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func decodeResource(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNewRegistration(t *testing.T) {
	const service = `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: m, annotations: {serving.kserve.io/deploymentMode: ModelMesh}}, spec: {predictor: `
	for name, tc := range map[string]struct {
		object string
		want   Registration
	}{
		"Predictor": {`{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m}, spec: {modelType: {name: onnx, version: "1"}, storage: {key: k, path: p}}}`,
			Registration{VModel: "m", Owner: "ksp", Type: "mt:onnx:1", Path: "p", Key: `{"storage_key":"k","model_type":{"name":"onnx","version":"1"}}`}},
		"Predictor with a runtime": {`{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m}, spec: {modelType: {name: onnx}, runtime: {name: custom}, storage: {path: p}}}`,
			Registration{VModel: "m", Owner: "ksp", Type: "rt:custom", Path: "p", Key: `{"model_type":{"name":"onnx"}}`}},
		"InferenceService": {service + `{model: {modelFormat: {name: sklearn}, storageUri: "s3://b/p"}}}}`,
			Registration{VModel: "m", Owner: "isvc", Type: "mt:sklearn", Path: "p", Key: `{"storage_params":{"bucket":"b","type":"s3"},"model_type":{"name":"sklearn"}}`}},
	} {
		got, reason, err := NewRegistration(decodeResource(t, tc.object))
		if err != nil || got == nil || reason != "" {
			t.Fatalf("%s: registration %v, reason %q, error %v, want a registration", name, got, reason, err)
		}
		if !strings.HasPrefix(got.Model, "m__"+tc.want.Owner+"-") {
			t.Errorf("%s: model ID %s", name, got.Model)
		}
		tc.want.Model = got.Model
		if *got != tc.want {
			t.Errorf("%s: registration %+v, want %+v", name, *got, tc.want)
		}
	}
	for want, object := range map[string]string{
		"is not ModelMesh":                 strings.Replace(service, "ModelMesh", "RawDeployment", 1) + `{}}}`,
		"has neither a model nor":          service + `{}}}`,
		"Only one of spec.path":            `{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m}, spec: {path: a, modelType: {name: x}, storage: {path: p}}}`,
		"PersistentVolumeClaim is not sup": `{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m}, spec: {modelType: {name: x}, storage: {persistentVolumeClaim: {claimName: c}}}}`,
	} {
		got, reason, err := NewRegistration(decodeResource(t, object))
		message := reason
		if err != nil {
			message = err.Error()
		}
		if got != nil || !strings.Contains(message, want) {
			t.Errorf("registration %+v, message %q, want %q", got, message, want)
		}
	}
}
