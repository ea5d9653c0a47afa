package v1

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MLflow", "MLflowList"} {
		if !s.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
}

// TestSamplesRoundTrip decodes every MLflow sample strictly, and compares its encoding with that of its second decoding.
func TestSamplesRoundTrip(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob("../../../config/samples/mlflow*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("got samples %v, error %v", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "mlflowconfig.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := strict.Decode(data, nil, nil)
		if err != nil {
			t.Errorf("%s: unexpected error: %v", file, err)
			continue
		}
		m, ok := decoded.(*MLflow)
		if !ok || m.Name != SingletonName {
			t.Errorf("%s contains %T %v", file, decoded, m.GetName())
			continue
		}
		encoded, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		decodedAgain := &MLflow{}
		if err := json.Unmarshal(encoded, decodedAgain); err != nil {
			t.Fatal(err)
		}
		if encodedAgain, err := json.Marshal(decodedAgain.DeepCopy()); err != nil || !bytes.Equal(encoded, encodedAgain) {
			t.Errorf("%s changed in the round trip:\n%s\n%s (%v)", file, encoded, encodedAgain, err)
		}
	}
}

func TestStatusAccess(t *testing.T) {
	m := &MLflow{}
	m.Generation = 7
	m.ObserveGeneration()
	*m.ConditionsRef() = append(*m.ConditionsRef(), metav1.Condition{Type: "Available"})
	if m.Status.ObservedGeneration != 7 || len(m.Status.Conditions) != 1 || m.Status.Conditions[0].Type != "Available" {
		t.Errorf("got status %+v", m.Status)
	}
}
