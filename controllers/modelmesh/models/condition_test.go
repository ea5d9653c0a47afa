package models

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

// statusYAML returns the YAML of an InferenceService status after setModelStatus.
func statusYAML(t *testing.T, original string, s v1alpha1.PredictorStatus) string {
	t.Helper()
	var status v1beta1.InferenceServiceStatus
	if err := yaml.Unmarshal([]byte(original), &status); err != nil {
		t.Fatal(err)
	}
	setModelStatus(&status, s, "digits", now)
	data, err := yaml.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const (
	grpcAddress = "grpc://modelmesh-serving.ns:8033"
	restAddress = "http://modelmesh-serving.ns:8008"
)

var servingStatus = v1alpha1.PredictorStatus{
	Available: true, TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Loaded, TotalCopies: 1,
	GRPCEndpoint: grpcAddress, HTTPEndpoint: restAddress,
}

func TestStatusOfAvailableInferenceService(t *testing.T) {
	want := `address:
  url: http://modelmesh-serving.ns:8008/v2/models/digits
components:
  predictor:
    grpcUrl: grpc://modelmesh-serving.ns:8033
    restUrl: http://modelmesh-serving.ns:8008
    url: grpc://modelmesh-serving.ns:8033
conditions:
- lastTransitionTime: "2026-05-06T07:08:09Z"
  status: "True"
  type: PredictorReady
- lastTransitionTime: "2026-05-06T07:08:09Z"
  status: "True"
  type: Ready
modelStatus:
  copies:
    failedCopies: 0
    totalCopies: 1
  states:
    activeModelState: Loaded
  transitionStatus: UpToDate
url: grpc://modelmesh-serving.ns:8033
`
	if diff := cmp.Diff(want, statusYAML(t, "", servingStatus)); diff != "" {
		t.Error(diff)
	}
	withoutREST := servingStatus
	withoutREST.HTTPEndpoint = ""
	var status v1beta1.InferenceServiceStatus
	setModelStatus(&status, withoutREST, "digits", now)
	if status.Address != nil || status.Components["predictor"].RestURL != "" || status.URL != grpcAddress {
		t.Errorf("status %+v without the REST proxy, want only the gRPC address", status)
	}
}

// The status is that of testdata/recordings/claims-and-inferenceservice.yaml with another model name, without the empty targetModelState,
// and with the reason and message of the conditions.
func TestStatusOfInferenceServiceWithoutPods(t *testing.T) {
	s := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending, LastFailureInfo: newFailure("RuntimeUnhealthy", messageNoPods, "digits__isvc-9793aabec7", "", nil)}
	want := `conditions:
- lastTransitionTime: "2026-05-06T07:08:09Z"
  message: Waiting for runtime Pod to become available
  reason: RuntimeUnhealthy
  status: "False"
  type: PredictorReady
- lastTransitionTime: "2026-05-06T07:08:09Z"
  message: Waiting for runtime Pod to become available
  reason: RuntimeUnhealthy
  status: "False"
  type: Ready
modelStatus:
  copies:
    failedCopies: 0
  lastFailureInfo:
    message: Waiting for runtime Pod to become available
    modelRevisionName: digits__isvc-9793aabec7
    reason: RuntimeUnhealthy
  states:
    activeModelState: Pending
  transitionStatus: ""
`
	if diff := cmp.Diff(want, statusYAML(t, "", s)); diff != "" {
		t.Error(diff)
	}
}

const kserveStatus = `
observedGeneration: 7
deploymentMode: ModelMesh
url: http://digits.example.com
address: {url: http://digits-transformer.ns.svc}
components:
  transformer: {url: http://digits-transformer.ns}
conditions:
- {type: IngressReady, status: "True", severity: Info, lastTransitionTime: "2020-01-01T00:00:00Z"}
- {type: PredictorReady, status: "True", lastTransitionTime: "2020-01-01T00:00:00Z"}
- {type: Ready, status: "True", lastTransitionTime: "2020-01-01T00:00:00Z"}
- {type: TransformerReady, status: "False", reason: Crashing, message: pod crashes, lastTransitionTime: "2020-01-01T00:00:00Z"}
`

func TestFieldsOfKServeAreKept(t *testing.T) {
	want := `address:
  url: http://digits-transformer.ns.svc
components:
  predictor:
    grpcUrl: grpc://modelmesh-serving.ns:8033
    restUrl: http://modelmesh-serving.ns:8008
    url: grpc://modelmesh-serving.ns:8033
  transformer:
    url: http://digits-transformer.ns
conditions:
- lastTransitionTime: "2020-01-01T00:00:00Z"
  severity: Info
  status: "True"
  type: IngressReady
- lastTransitionTime: "2020-01-01T00:00:00Z"
  status: "True"
  type: PredictorReady
- lastTransitionTime: "2026-05-06T07:08:09Z"
  message: pod crashes
  reason: Crashing
  status: "False"
  type: Ready
- lastTransitionTime: "2020-01-01T00:00:00Z"
  message: pod crashes
  reason: Crashing
  status: "False"
  type: TransformerReady
deploymentMode: ModelMesh
modelStatus:
  copies:
    failedCopies: 0
    totalCopies: 1
  states:
    activeModelState: Loaded
  transitionStatus: UpToDate
observedGeneration: 7
url: http://digits.example.com
`
	if diff := cmp.Diff(want, statusYAML(t, kserveStatus, servingStatus)); diff != "" {
		t.Error(diff)
	}
}

func TestAddressIsRemovedFromUnavailableModel(t *testing.T) {
	var status v1beta1.InferenceServiceStatus
	setModelStatus(&status, servingStatus, "digits", now)
	unavailable := servingStatus
	unavailable.Available, unavailable.ActiveModelState = false, v1alpha1.FailedToLoad
	later := now.Add(time.Hour)
	setModelStatus(&status, unavailable, "digits", later)
	if status.URL != "" || status.Address.URL != "" || status.Components["predictor"] != (v1beta1.ComponentStatus{}) {
		t.Errorf("status %+v, want no addresses", status)
	}
	for _, c := range status.Conditions {
		if c.Status != corev1.ConditionFalse || c.Reason != "ModelFailedToLoad" || c.Message == "" || !c.LastTransitionTime.Equal(metaTime(later)) {
			t.Errorf("condition %+v, want False with ModelFailedToLoad, a message and a new transition time", c)
		}
	}
}

func TestUnavailableReason(t *testing.T) {
	for state, want := range map[v1alpha1.ModelState]string{"": "ModelPending", "Pending": "ModelPending", "FailedToLoad": "ModelFailedToLoad", "Loading": "ModelLoading"} {
		if reason, message := unavailableReason(v1alpha1.PredictorStatus{ActiveModelState: state}); reason != want || message == "" {
			t.Errorf("%q: reason %s, message %q, want reason %s", state, reason, message, want)
		}
	}
}

// drawStatus draws a status that a model can have.
func drawStatus(t *rapid.T) v1alpha1.PredictorStatus {
	s := v1alpha1.PredictorStatus{
		TransitionStatus: rapid.SampledFrom([]v1alpha1.TransitionStatus{"", "UpToDate", "InProgress", "BlockedByFailedLoad", "InvalidSpec"}).Draw(t, "transition"),
		ActiveModelState: rapid.SampledFrom([]v1alpha1.ModelState{"Pending", "Standby", "Loading", "Loaded", "FailedToLoad"}).Draw(t, "active"),
		TargetModelState: rapid.SampledFrom([]v1alpha1.ModelState{"", "Pending", "Standby", "Loading", "Loaded", "FailedToLoad"}).Draw(t, "target"),
		FailedCopies:     rapid.IntRange(0, 2).Draw(t, "failed"), TotalCopies: rapid.IntRange(0, 3).Draw(t, "total"),
	}
	if rapid.Bool().Draw(t, "has failure") {
		s.LastFailureInfo = newFailure(rapid.SampledFrom([]v1alpha1.FailureReason{"ModelLoadFailed", "RuntimeUnhealthy"}).Draw(t, "reason"), "text", "m", "a", metaTimeAfter(0))
	}
	if s.Available = isAvailable(s); s.Available {
		s.GRPCEndpoint = grpcAddress
		s.HTTPEndpoint = rapid.SampledFrom([]string{"", restAddress}).Draw(t, "http")
	}
	return s
}

// A status is read as it was written, and writing it a second time does not change it.
func TestInferenceServiceStatusIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var status v1beta1.InferenceServiceStatus
		if rapid.Bool().Draw(t, "KServe fields") {
			if err := yaml.Unmarshal([]byte(kserveStatus), &status); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			s := drawStatus(t)
			setModelStatus(&status, s, "digits", now)
			data, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			status = v1beta1.InferenceServiceStatus{}
			if err := json.Unmarshal(data, &status); err != nil {
				t.Fatal(err)
			}
			s.ObservedGeneration = status.ObservedGeneration // it never decreases
			if hasFirstLoadFailed(s) {
				s.TransitionStatus = v1alpha1.UpToDate
			}
			if diff := cmp.Diff(s, toPredictorStatus(&status)); diff != "" {
				t.Fatalf("the read status differs (-written +read):\n%s", diff)
			}
			original := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "digits"}, Status: status}
			updated := original.DeepCopy()
			setModelStatus(&updated.Status, s, "digits", now.Add(time.Hour))
			if !equality.Semantic.DeepEqual(original.Status, updated.Status) {
				t.Fatalf("the second write changed the status:\n%s", cmp.Diff(original.Status, updated.Status))
			}
		}
	})
}

// [C-11] The transition of a failed first model is BlockedByFailedLoad: Argo CD and KServe interpret it as degraded, and UpToDate as
// progressing.
func TestTransitionStatusOfInferenceService(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.PredictorStatus
		want   v1alpha1.TransitionStatus
	}{
		"first model failed":  {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad"}, "BlockedByFailedLoad"},
		"second model failed": {v1alpha1.PredictorStatus{TransitionStatus: "BlockedByFailedLoad", ActiveModelState: "Loaded", TargetModelState: "FailedToLoad"}, "BlockedByFailedLoad"},
		"transition from a failed model": {v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "FailedToLoad", TargetModelState: "Loading"},
			"InProgress"},
		"loading":                {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading"}, "UpToDate"},
		"loaded":                 {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded"}, "UpToDate"},
		"invalid spec":           {v1alpha1.PredictorStatus{TransitionStatus: "InvalidSpec", ActiveModelState: "FailedToLoad"}, "InvalidSpec"},
		"no pods":                {v1alpha1.PredictorStatus{ActiveModelState: "Pending"}, ""},
		"failed, not registered": {v1alpha1.PredictorStatus{ActiveModelState: "FailedToLoad"}, ""},
	} {
		var status v1beta1.InferenceServiceStatus
		setModelStatus(&status, c.status, "digits", now)
		if got := status.ModelStatus.TransitionStatus; got != c.want {
			t.Errorf("%s: transition %q, want %q", name, got, c.want)
		}
		if got := toPredictorStatus(&status).TransitionStatus; got != c.status.TransitionStatus {
			t.Errorf("%s: read as %q, want %q", name, got, c.status.TransitionStatus)
		}
	}
}

// toPredictorStatus accepts a status of another client without the fields that this operator always sets.
func TestToPredictorStatusOfPartialStatus(t *testing.T) {
	for text, want := range map[string]v1alpha1.PredictorStatus{
		``: {ActiveModelState: "Pending"},
		`modelStatus: {transitionStatus: InProgress}`:                                                        {ActiveModelState: "Pending", TransitionStatus: "InProgress"},
		`modelStatus: {transitionStatus: "", states: {activeModelState: ""}}`:                                {ActiveModelState: "Pending"},
		`modelStatus: {transitionStatus: "", lastFailureInfo: {}}`:                                           {ActiveModelState: "Pending"},
		`conditions: [{type: PredictorReady, status: "True"}]`:                                               {ActiveModelState: "Pending", Available: true},
		`conditions: [{type: Ready, status: "True"}]`:                                                        {ActiveModelState: "Pending"},
		`components: {predictor: {grpcUrl: a, restUrl: b, url: c}}`:                                          {ActiveModelState: "Pending", GRPCEndpoint: "a", HTTPEndpoint: "b"},
		`modelStatus: {transitionStatus: "", copies: {failedCopies: 1, totalCopies: 2}}`:                     {ActiveModelState: "Pending", FailedCopies: 1, TotalCopies: 2},
		`modelStatus: {transitionStatus: "", states: {activeModelState: Loaded, targetModelState: Loading}}`: {ActiveModelState: "Loaded", TargetModelState: "Loading"},
	} {
		var status v1beta1.InferenceServiceStatus
		if err := yaml.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, toPredictorStatus(&status)); diff != "" {
			t.Errorf("%s: the converted status differs (-want +got):\n%s", text, diff)
		}
	}
}
