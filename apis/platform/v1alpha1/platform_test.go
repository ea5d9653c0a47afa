package v1alpha1

import (
	"encoding/json"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestSampleOfMLflowOperatorIsDecoded(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../config/samples/platform_mlflowoperator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := decoded.(*MLflowOperator)
	if !ok || *kind != GroupVersion.WithKind("MLflowOperator") || m.Name != MLflowOperatorName {
		t.Fatalf("the sample contains %v %s", kind, m.GetName())
	}
	if m.Spec.GatewayName != "data-science-gateway" || m.Spec.SectionTitle == "" || m.Spec.Gateway.Domain == "" {
		t.Errorf("got spec %+v", m.Spec)
	}
	if !s.Recognizes(GroupVersion.WithKind("MLflowOperatorList")) {
		t.Error("want the list type registered in the scheme")
	}
}

// Unset fields are omitted, because the schema rejects a zero time.
func TestStatusEncoding(t *testing.T) {
	m := &MLflowOperator{}
	m.Generation = 4
	m.ObserveGeneration()
	m.SetConditions([]Condition{{Type: "Ready", Status: metav1.ConditionTrue}})
	m.Status.Releases = []Release{{Name: "MLflow", RepoURL: "https://x"}}
	data, err := json.Marshal(m.Status)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"observedGeneration":4,"conditions":[{"type":"Ready","status":"True"}],"releases":[{"name":"MLflow","repoUrl":"https://x"}]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	decoded := &MLflowOperatorStatus{}
	complete := `{"conditions":[{"type":"A","status":"Unknown","severity":"Info","lastHeartbeatTime":"2026-08-18T09:00:00Z","lastTransitionTime":"2026-08-18T09:00:00Z"}]}`
	if err := json.Unmarshal([]byte(complete), decoded); err != nil || decoded.Conditions[0].Severity != SeverityInfo || decoded.Conditions[0].LastHeartbeatTime == nil {
		t.Errorf("%+v, error %v", decoded, err)
	}
}

func TestSampleOfAIHubIsDecoded(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../config/samples/platform_aihub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := decoded.(*AIHub)
	if !ok || a.Name != AIHubName || a.Spec.InstancesNamespace == "" || a.Spec.Gateway.Domain == "" {
		t.Fatalf("the sample contains %+v", decoded)
	}
}

func TestStatusAccessOfAIHub(t *testing.T) {
	a := &AIHub{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	a.ObserveGeneration()
	a.SetConditions([]Condition{{Type: "Ready", Status: metav1.ConditionFalse}})
	if got := a.GetConditions(); a.Status.ObservedGeneration != 2 || len(got) != 1 || got[0].Type != "Ready" {
		t.Errorf("got status %+v", a.Status)
	}
}
