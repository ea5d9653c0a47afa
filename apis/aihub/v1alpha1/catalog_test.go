package v1alpha1

import (
	"encoding/json"
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
	data, err := os.ReadFile("../../../config/samples/aihub_catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := decoded.(*Catalog)
	if !ok || *kind != GroupVersion.WithKind(Kind) || c.Name != CatalogName || c.Spec.Database.Volume.SizeLimit.String() != "10Gi" {
		t.Errorf("decoded %v %+v, want the sample Catalog with a volume of 10Gi", kind, decoded)
	}
	if !s.Recognizes(GroupVersion.WithKind("CatalogList")) {
		t.Error("want the list type registered in the scheme")
	}
}

func TestUnsetFieldsAreOmitted(t *testing.T) {
	c := &Catalog{}
	c.Generation = 2
	data, err := json.Marshal(c)
	if err != nil || string(data) != `{"metadata":{"generation":2}}` {
		t.Errorf("got %s, error %v", data, err)
	}
	c.ObserveGeneration()
	data, err = json.Marshal(c)
	if err != nil || string(data) != `{"metadata":{"generation":2},"status":{"observedGeneration":2}}` {
		t.Errorf("got %s, error %v", data, err)
	}
	if c.ConditionsRef() != &c.Status.Conditions {
		t.Error("want ConditionsRef to point to status.conditions")
	}
}
