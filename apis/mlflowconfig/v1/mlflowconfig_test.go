package v1

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestSampleIsDecoded(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../config/samples/mlflowconfig.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, ok := decoded.(*MLflowConfig)
	if !ok || *kind != GroupVersion.WithKind("MLflowConfig") {
		t.Fatalf("the sample is of kind %v, want MLflowConfig", kind)
	}
	want := MLflowConfigSpec{ArtifactRootSecret: "mlflow-artifact-connection", ArtifactRootPath: "experiments"}
	if config.Spec != want {
		t.Errorf("got spec %+v, want %+v", config.Spec, want)
	}
}
