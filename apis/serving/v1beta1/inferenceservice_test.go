package v1beta1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// A list is decoded even if its objects have fields that the Go types do not have, whatever the values of these fields are.
func TestListIsDecoded(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	text := `{"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceServiceList","metadata":{"resourceVersion":"9"},"items":[
		{"metadata":{"name":"a"},"spec":{"predictor":{"minReplicas":2,"huggingface":{},"containers":[{"name":"x","ports":[{"containerPort":"odd"}]}],
			"sklearn":{"storageUri":"s3://b/p","resources":{"limits":{"cpu":true}}}}}},
		{"metadata":{"name":"b"},"spec":{"predictor":{"model":{"modelFormat":{"name":"onnx"},"storage":{"parameters":{}}}}},
			"status":{"address":{"url":"http://b"},"modelStatus":{"transitionStatus":"","states":{"activeModelState":""}}}}]}`
	decoded, kind, err := serializer.NewCodecFactory(s).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, ok := decoded.(*InferenceServiceList)
	if !ok || *kind != GroupVersion.WithKind(KindInferenceService+"List") || len(list.Items) != 2 || list.ResourceVersion != "9" {
		t.Fatalf("unexpected kind %v or list %+v", kind, decoded)
	}
	if got := list.Items[0].Spec.Predictor; got.SKLearn == nil || *got.SKLearn.StorageURI != "s3://b/p" || got.Model != nil {
		t.Errorf("the first predictor was decoded as %+v, want sklearn with storageUri s3://b/p", got)
	}
	second := list.Items[1]
	if second.Spec.Predictor.Model.ModelFormat.Name != "onnx" || second.Status.ModelStatus.States.ActiveModelState != v1alpha1.NoState {
		t.Errorf("the second InferenceService was decoded as %+v, want format onnx and no active model state", second)
	}
}

// [UP-F6] Unknown fields of the spec are listed in Ignored, but only for ModelMesh. Unknown fields of the status are not.
func TestIgnoredFields(t *testing.T) {
	decode := func(mode, fields string) *InferenceService {
		s := &InferenceService{Ignored: []string{"before"}}
		text := fmt.Sprintf(`{"metadata":{"name":"a","annotations":{%q:%q}},"spec":{"predictor":{"timeout":1,"model":{"modelFormat":{"name":"x"}}%s}},
			"status":{"odd":1,"modelStatus":{"transitionStatus":"","odd":1}}}`, AnnotationDeploymentMode, mode, fields)
		if err := json.Unmarshal([]byte(text), s); err != nil || *s.Spec.Predictor.Timeout != 1 {
			t.Fatalf("got %+v, error %v, want the known field timeout and no error", s, err)
		}
		return s
	}
	unknown := `,"hostnameOverride":"h","logger":{"batchSize":2}`
	got := decode(DeploymentModeModelMesh, unknown).Ignored
	slices.Sort(got)
	if want := []string{"spec.predictor.hostnameOverride", "spec.predictor.logger"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for mode, fields := range map[string]string{"Standard": unknown, "": unknown, DeploymentModeModelMesh: ""} {
		if got := decode(mode, fields).Ignored; len(got) > 0 {
			t.Errorf("mode %q: ignored fields %q, want none", mode, got)
		}
	}
	for i := range 30 {
		unknown += fmt.Sprintf(`,"unknown%d":1`, i)
	}
	if got := decode(DeploymentModeModelMesh, unknown).Ignored; len(got) != maxIgnored {
		t.Errorf("%d ignored fields, want %d", len(got), maxIgnored)
	}
	if err := json.Unmarshal([]byte(`{"spec":7}`), &InferenceService{}); err == nil || !strings.HasPrefix(err.Error(), "decoding an InferenceService: ") {
		t.Error(err)
	}
}

// The status has the field names and values of KServe, and omits unset optional fields.
func TestStatusAsJSON(t *testing.T) {
	timestamp := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC))
	s := InferenceServiceStatus{
		Conditions: []Condition{
			{Type: ConditionPredictorReady, Status: corev1.ConditionFalse, LastTransitionTime: timestamp, Reason: "R", Message: "m"},
			{Type: ConditionReady, Status: corev1.ConditionUnknown},
		},
		URL:        "grpc://a:1",
		Components: map[string]ComponentStatus{ComponentPredictor: {URL: "grpc://a:1", GRPCURL: "grpc://a:1", RestURL: "http://a:2"}},
		ModelStatus: &ModelStatus{
			TransitionStatus: v1alpha1.InProgress, States: &ModelRevisionStates{ActiveModelState: v1alpha1.Loaded, TargetModelState: v1alpha1.Loading},
			Copies: &ModelCopies{TotalCopies: 2}, LastFailureInfo: &FailureInfo{Reason: v1alpha1.ModelLoadFailed, ModelRevisionName: "a__isvc-0", Time: &timestamp},
		},
	}
	got, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"conditions":[{"type":"PredictorReady","status":"False","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R","message":"m"},` +
		`{"type":"Ready","status":"Unknown"}],"url":"grpc://a:1",` +
		`"components":{"predictor":{"url":"grpc://a:1","restUrl":"http://a:2","grpcUrl":"grpc://a:1"}},` +
		`"modelStatus":{"transitionStatus":"InProgress","states":{"activeModelState":"Loaded","targetModelState":"Loading"},` +
		`"lastFailureInfo":{"reason":"ModelLoadFailed","modelRevisionName":"a__isvc-0","time":"2026-01-02T03:04:05Z"},"copies":{"failedCopies":0,"totalCopies":2}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if got, err := json.Marshal(InferenceServiceStatus{}); err != nil || string(got) != "{}" {
		t.Errorf("an empty status was encoded as %s, error %v, want {}", got, err)
	}
}

// A copy shares nothing with its original.
func TestCopiesAreDeep(t *testing.T) {
	first := &InferenceService{Spec: InferenceServiceSpec{Predictor: PredictorSpec{Model: &ModelSpec{
		Runtime: new("r"), PredictorExtension: PredictorExtension{Storage: &ModelStorage{Parameters: map[string]string{"a": "b"}, Path: new("p")}},
	}}}}
	second := first.DeepCopy()
	second.Spec.Predictor.Model.Storage.Parameters["a"] = "c"
	*second.Spec.Predictor.Model.Runtime, *second.Spec.Predictor.Model.Storage.Path = "x", "x"
	m := first.Spec.Predictor.Model
	if m.Storage.Parameters["a"] != "b" || *m.Runtime != "r" || *m.Storage.Path != "p" {
		t.Errorf("changing the copy changed the original: %+v", m)
	}
}
