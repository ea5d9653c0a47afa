package v1beta1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestSamplesAreDecoded(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../config/samples/modelregistry_*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("samples %v, error %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoded, kind, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			t.Errorf("%s: unexpected error: %v", file, err)
			continue
		}
		m, ok := decoded.(*ModelRegistry)
		if !ok || *kind != GroupVersion.WithKind(Kind) {
			t.Errorf("%s: decoded %v, want a v1beta1 ModelRegistry", file, kind)
			continue
		}
		if m.Spec.Postgres == nil == (m.Spec.MySQL == nil) {
			t.Errorf("%s: want one of postgres and mysql, got %+v", file, m.Spec)
		}
	}
	if !s.Recognizes(GroupVersion.WithKind("ModelRegistryList")) {
		t.Error("want the list type registered in the scheme")
	}
}

// Unset fields are omitted: a patch must not add fields that the user has not set.
func TestUnsetFieldsAreOmitted(t *testing.T) {
	m := &ModelRegistry{}
	m.Generation = 3
	data, err := json.Marshal(m)
	if err != nil || string(data) != `{"metadata":{"generation":3}}` {
		t.Errorf("got %s, error %v", data, err)
	}
	m.Spec = ModelRegistrySpec{Postgres: &PostgresConfig{GenerateDeployment: new(true)}, KubeRBACProxy: &ProxyConfig{}}
	m.ObserveGeneration()
	data, err = json.Marshal(m)
	want := `{"metadata":{"generation":3},"spec":{"rest":{},"postgres":{"generateDeployment":true},"kubeRBACProxy":{}},"status":{"observedGeneration":3}}`
	if err != nil || string(data) != want {
		t.Errorf("got  %s\nwant %s\nerror %v", data, want, err)
	}
	if m.ConditionsRef() != &m.Status.Conditions {
		t.Error("want ConditionsRef to point to status.conditions")
	}
}
