package modelmesh

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

var idPattern = regexp.MustCompile(`(?s)^.*__(ksp|isvc)-[0-9a-f]{10}$`)

// FuzzInferenceService checks that conversion does not panic, does not modify the object, is deterministic, and returns a message with
// each error.
func FuzzInferenceService(f *testing.F) {
	for _, spec := range []string{
		`{"predictor":{"model":{"modelFormat":{"name":"sklearn","version":"1"},"runtime":"r","storage":{"key":"k","path":"p","schemaPath":"s","parameters":{"a":"b"}}}}}`,
		`{"predictor":{"sklearn":{"storageUri":"s3://bucket/a/b","protocolVersion":"v2"}}}`,
		`{"predictor":{"model":{"storageUri":"https://account.blob.core.windows.net/container/p"},"onnx":{}}}`,
		`{"predictor":{"pmml":{"storageUri":"pvc://claim"}}}`, `{"predictor":{"triton":{"storageUri":"http://h/p?q=<&>"}}}`,
		`{"predictor":{"xgboost":{"storageUri":"gs://%zz"}}}`, `{"predictor":{"lightgbm":{"storage":{"path":""}}}}`, `{}`, `null`, `[]`,
	} {
		f.Add([]byte(spec), "", "")
		f.Add([]byte(spec), v1beta1.AnnotationServingRuntime, "r")
		f.Add([]byte(spec), v1beta1.AnnotationSecretKey, "")
	}
	f.Fuzz(func(t *testing.T, spec []byte, annotation, value string) {
		s := &v1beta1.InferenceService{}
		if json.Unmarshal(spec, &s.Spec) != nil || !utf8.ValidString(annotation+value) { // an API server stores neither
			return
		}
		s.Namespace, s.Name = "ns", "name"
		s.Annotations = map[string]string{annotation: value, v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
		before := s.DeepCopy()
		m, managed, err := FromInferenceService(s)
		if !reflect.DeepEqual(before, s) {
			t.Error("the object was modified")
		}
		if !managed || m.Namespace != "ns" || m.Name != "name" || (err != nil && err.Error() == "") {
			t.Errorf("FromInferenceService returns managed %t, model %+v and error %v", managed, m, err)
		}
		if err == nil {
			if m.Spec.Storage == nil || m.Spec.Storage.Path == nil || m.Spec.Storage.Parameters == nil {
				t.Errorf("storage.path or storage.parameters is nil: %+v", m.Spec.Storage)
			}
			checkStable(t, m)
		}
		if again, _, _ := FromInferenceService(before); !reflect.DeepEqual(again, m) {
			t.Errorf("conversion is not deterministic: %+v, then %+v", m, again)
		}
	})
}

// FuzzPredictor checks that the model of a Predictor has a stable ID and key.
func FuzzPredictor(f *testing.F) {
	for _, spec := range []string{
		`{"modelType":{"name":"sklearn"},"path":"p","storage":{"s3":{"secretKey":"k","bucket":"b"}}}`,
		`{"modelType":{"name":"f","version":""},"storage":{"path":"p","parameters":{}},"runtime":{"name":""},"gpu":"required"}`,
		`{"modelType":{"name":"<>&"},"storage":{"key":"","persistentVolumeClaim":{"claimName":"c"}}}`, `{}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		p := &v1alpha1.Predictor{}
		if json.Unmarshal(spec, &p.Spec) != nil {
			return
		}
		p.Name = "name"
		checkStable(t, FromPredictor(p))
	})
}

// checkStable checks that a model has an ID and a key, and keeps both after a round trip of its spec through JSON.
func checkStable(t *testing.T, m Model) {
	t.Helper()
	id := m.ID()
	key := m.Key()
	if !idPattern.MatchString(id) || !json.Valid([]byte(key)) {
		t.Errorf("want a valid ID and a JSON key, got %q and %q", id, key)
	}
	_, _, _ = m.Label(), m.Path(), m.ValidationMessage()
	stored, err := json.Marshal(m.Spec)
	if err != nil {
		t.Fatal(err)
	}
	read := m
	read.Spec = v1alpha1.PredictorSpec{}
	if err := json.Unmarshal(stored, &read.Spec); err != nil {
		t.Fatal(err)
	}
	if otherKey := read.Key(); read.ID() != id || otherKey != key {
		t.Errorf("a round trip changes ID and key from %q and %q to %q and %q", id, key, read.ID(), otherKey)
	}
}
