package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestKindsAreRegistered(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{KindPredictor, KindServingRuntime, KindClusterServingRuntime} {
		if !s.Recognizes(GroupVersion.WithKind(kind)) || !s.Recognizes(GroupVersion.WithKind(kind+"List")) {
			t.Errorf("%s or its list is not registered", kind)
		}
	}
}

// Model IDs contain a hash of the encoded spec, so the order of its fields and the omitted fields are those of the legacy controller.
func TestEncodedSpecIsStable(t *testing.T) {
	empty := ""
	cases := map[string]struct {
		spec PredictorSpec
		want string
	}{
		"empty spec": {want: `{"modelType":{"name":""},"path":""}`},
		"empty strings and maps are not omitted": {
			spec: PredictorSpec{
				ModelType: ModelType{Name: "sklearn", Version: &empty}, ProtocolVersion: &empty, Runtime: &RuntimeRef{},
				Storage: &Storage{Path: &empty, Parameters: map[string]string{}},
			},
			want: `{"modelType":{"name":"sklearn","version":""},"path":"","storage":{"path":"","parameters":{}},"runtime":{"name":""},"protocolVersion":""}`,
		},
		"all fields": {
			spec: fullSpec(),
			want: `{"serviceAccountName":"sa","modelType":{"name":"f","version":"1"},"path":"p","schemaPath":"s",` +
				`"storage":{"path":"sp","schemaPath":"ss","parameters":{"a":"\u003c","b":"2"},"key":"k",` +
				`"persistentVolumeClaim":{"claimName":"c"},"s3":{"secretKey":"x","bucket":"b"}},` +
				`"gpu":"required","runtime":{"name":"r"},"protocolVersion":"v2"}`,
		},
	}
	for name, c := range cases {
		data, err := json.Marshal(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(data)); diff != "" {
			t.Errorf("%s: the JSON differs (-want +got):\n%s", name, diff)
		}
		var decoded PredictorSpec
		if err := json.Unmarshal(data, &decoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.spec, decoded); diff != "" {
			t.Errorf("%s: the decoded spec differs (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(&c.spec, c.spec.DeepCopy()); diff != "" {
			t.Errorf("%s: the copy differs (-want +got):\n%s", name, diff)
		}
	}
}

func fullSpec() PredictorSpec {
	gpu := GPURequest("required")
	s := &Storage{
		Path: new("sp"), SchemaPath: new("ss"), Parameters: map[string]string{"b": "2", "a": "<"}, Key: new("k"),
		S3: &S3Storage{SecretKey: "x", Bucket: new("b")},
	}
	if err := json.Unmarshal([]byte(`{"claimName":"c"}`), &s.PersistentVolumeClaim); err != nil {
		panic(err)
	}
	return PredictorSpec{
		ServiceAccountName: new("sa"), ModelType: ModelType{Name: "f", Version: new("1")}, Path: "p", SchemaPath: new("s"),
		Storage: s, GPU: &gpu, Runtime: &RuntimeRef{Name: "r"}, ProtocolVersion: new("v2"),
	}
}

// [modelmesh-71] Deprecated fields are encoded to YAML and decoded without loss.
func TestDeprecatedFieldsAsYAML(t *testing.T) {
	gpu := GPURequest("preferred")
	p := &Predictor{Spec: PredictorSpec{
		ModelType: ModelType{Name: "pytorch"}, Path: "cifar", SchemaPath: new("schema.json"), GPU: &gpu,
		Storage: &Storage{S3: &S3Storage{SecretKey: "myStorage", Bucket: new("models")}},
	}}
	data, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `metadata: {}
spec:
  gpu: preferred
  modelType:
    name: pytorch
  path: cifar
  schemaPath: schema.json
  storage:
    s3:
      bucket: models
      secretKey: myStorage
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	decoded := &Predictor{}
	if err := yaml.Unmarshal(data, decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, decoded); diff != "" {
		t.Error(diff)
	}
}

// An empty status is omitted, so that the default of the schema applies. Otherwise, all required fields are encoded.
func TestUnsetStatusIsOmitted(t *testing.T) {
	p := &Predictor{Status: PredictorStatus{TransitionStatus: UpToDate}}
	data, err := json.Marshal(p.Status)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"transitionStatus":"UpToDate","activeModelState":"","targetModelState":"","available":false,"failedCopies":0,"totalCopies":0}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	p.Status.LastFailureInfo = &FailureInfo{Time: &metav1.Time{}}
	if clone := p.DeepCopy(); clone.Status.LastFailureInfo == p.Status.LastFailureInfo || clone.Status.LastFailureInfo.Time == nil {
		t.Error("DeepCopy shares or drops status.lastFailureInfo")
	}
	if data, err = json.Marshal(Predictor{Spec: fullSpec()}); err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields["status"] != nil {
		t.Errorf("fields %v, error %v, want no status", fields, err)
	}
}
