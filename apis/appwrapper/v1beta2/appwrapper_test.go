package v1beta2

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{Kind, Kind + "List"} {
		if !s.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("want kind %s registered", kind)
		}
	}
}

// stored is an AppWrapper as the legacy operator stored it, with every field of its API.
const stored = `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: train, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  managedBy: workload.codeflare.dev/appwrapper-controller
  suspend: true
  components:
  - annotations: {note: text}
    podSets:
    - {path: template.spec.template, replicas: 2, annotations: {workload.codeflare.dev.appwrapper/tas-sub-group-count: "2"}}
    podSetInfos:
    - annotations: {a: b}
      labels: {c: d}
      nodeSelector: {e: f}
      tolerations: [{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 5}]
      schedulingGates: [{name: gate}]
    template: {apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {unknownField: {x: 1}}}
status:
  phase: Resetting
  resettingCount: 2
  conditions:
  - {type: Unhealthy, status: "True", reason: FoundFailedPods, message: "", lastTransitionTime: "2026-05-03T10:00:00Z"}
  componentStatus:
  - name: train
    kind: Job
    apiVersion: batch/v1
    podSets: [{path: template.spec.template, replicas: 2}]
    conditions:
    - {type: ResourcesDeployed, status: "False", reason: CompononetDeleted, message: "", lastTransitionTime: "2026-05-03T10:00:00Z"}
`

// An object that the legacy operator stored has no unknown fields, and decoding and encoding do not change it.
func TestStoredObjectRoundTrips(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
	decoded, _, err := strict.Decode([]byte(stored), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	aw, ok := decoded.(*AppWrapper)
	if !ok || aw.Status.Retries != 2 || aw.Status.Phase != PhaseResetting || !aw.IsManaged() {
		t.Fatalf("got %T %+v, want a managed AppWrapper in phase Resetting after two retries", decoded, decoded)
	}
	if reason := aw.Status.ComponentStatus[0].Conditions[0].Reason; reason != ReasonComponentDeletedTypo {
		t.Errorf("got reason %q of a deleted component, want %q", reason, ReasonComponentDeletedTypo)
	}
	encoded, err := json.Marshal(aw.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(stored), &want), json.Unmarshal(encoded, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("encoded object (-want +got):\n%s", diff)
	}
}

func TestConditionsRef(t *testing.T) {
	aw := &AppWrapper{}
	if aw.ObserveGeneration(); len(aw.Status.Conditions) != 0 {
		t.Errorf("got status %+v, want no conditions", aw.Status)
	}
	*aw.ConditionsRef() = append(*aw.ConditionsRef(), metav1.Condition{Type: ConditionUnhealthy})
	if len(aw.Status.Conditions) != 1 || aw.Status.Conditions[0].Type != "Unhealthy" {
		t.Errorf("got status %+v, want the condition Unhealthy", aw.Status)
	}
}

func TestIsManaged(t *testing.T) {
	for _, test := range []struct {
		name      string
		managedBy *string
		want      bool
	}{
		{"absent", nil, true},
		{"this controller", ptr.To("workload.codeflare.dev/appwrapper-controller"), true},
		{"MultiKueue", ptr.To("kueue.x-k8s.io/multikueue"), false},
		{"empty", ptr.To(""), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&AppWrapper{Spec: AppWrapperSpec{ManagedBy: test.managedBy}}).IsManaged(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
