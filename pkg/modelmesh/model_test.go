package modelmesh

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

// predictorModel returns the model of a Predictor with the given spec in YAML.
func predictorModel(t *testing.T, name, spec string) Model {
	t.Helper()
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "uid"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return FromPredictor(p)
}

// inferenceService returns an InferenceService with the given spec.predictor in YAML; annotations are pairs of name and value.
func inferenceService(t *testing.T, name, spec string, annotations ...string) *v1beta1.InferenceService {
	t.Helper()
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "uid", Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations[annotations[i]] = annotations[i+1]
	}
	if err := yaml.Unmarshal([]byte(spec), &s.Spec.Predictor); err != nil {
		t.Fatal(err)
	}
	return s
}

// convertedModel returns the model of an InferenceService in ModelMesh mode.
func convertedModel(t *testing.T, name, spec string, annotations ...string) Model {
	t.Helper()
	m, managed, err := FromInferenceService(inferenceService(t, name, spec, append(annotations, v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh)...))
	if err != nil || !managed {
		t.Fatalf("got managed %t and error %v", managed, err)
	}
	return m
}

// [modelmesh-87] The hashes equal those of the legacy controller. Other hashes would reload every model in an upgrade.
func TestModelIDsOfLegacyController(t *testing.T) {
	for want, m := range map[string]Model{
		"m__isvc-6b2eb0b8bf": convertedModel(t, "m", `{model: {modelFormat: {name: sklearn}, storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`),
		"m__isvc-3642375d03": convertedModel(t, "m",
			`{model: {modelFormat: {name: sklearn}, storageUri: s3://modelmesh-example-models/sklearn/mnist-svm.joblib, storage: {key: localMinIO}}}`),
		"m__isvc-3d2daa3370": convertedModel(t, "m",
			`{model: {modelFormat: {name: sklearn}, storage: {path: sklearn/mnist-svm.joblib, parameters: {type: pvc, name: my-models-pvc}}}}`),
		"m__isvc-b29c3d91f3": convertedModel(t, "m", `{model: {modelFormat: {name: onnx}, runtime: ovms-1.x, storage: {key: localMinIO, path: onnx/mnist.onnx}}}`),
		"m__ksp-7702c1b55a":  predictorModel(t, "m", `{modelType: {name: sklearn}, path: sklearn/mnist-svm.joblib, storage: {s3: {secretKey: localMinIO}}}`),
		"m__ksp-f624b27e99":  predictorModel(t, "m", `{modelType: {name: xgboost}, path: xgboost/mushroom.json, storage: {s3: {secretKey: localMinIO}}}`),
		// Recorded IDs of the legacy controller.
		"steady__ksp-9f7bdd9816":      predictorModel(t, "steady", `{modelType: {name: sklearn}, storage: {path: steady/v1, key: localStore}}`),
		"speech__ksp-5c5e4c0eaa":      predictorModel(t, "speech", `{modelType: {name: own-format}, storage: {path: speech/v1, key: localStore, parameters: {bucket: speech-models}}, runtime: {name: own-server}}`),
		"from-claim__isvc-9793aabec7": convertedModel(t, "from-claim", `{model: {modelFormat: {name: onnx, version: "1"}, storageUri: pvc://any-shelf/models/a.onnx}}`),
	} {
		if got := m.ID(); got != want {
			t.Errorf("got ID %s, want %s", got, want)
		}
	}
}

// Unset and empty fields are different specs, as in the legacy controller.
func TestModelIDDistinguishesUnsetFromEmpty(t *testing.T) {
	ids := map[string]string{}
	for _, spec := range []string{
		`{modelType: {name: a}}`,
		`{modelType: {name: a}, storage: {}}`,
		`{modelType: {name: a}, storage: {parameters: {}}}`,
		`{modelType: {name: a}, storage: {path: ""}}`,
		`{modelType: {name: a}, storage: {key: ""}}`,
		`{modelType: {name: a, version: ""}}`,
		`{modelType: {name: a}, protocolVersion: ""}`,
		`{modelType: {name: a}, schemaPath: ""}`,
		`{modelType: {name: a}, serviceAccountName: ""}`,
		`{modelType: {name: a}, runtime: {name: ""}}`,
		`{modelType: {name: a}, gpu: required}`,
		`{modelType: {name: a}, path: p}`,
		`{modelType: {name: a}, storage: {persistentVolumeClaim: {claimName: c}}}`,
		`{modelType: {name: a}, storage: {s3: {secretKey: k}}}`,
		`{modelType: {name: a}, storage: {s3: {secretKey: k, bucket: b}}}`,
	} {
		id := predictorModel(t, "m", spec).ID()
		if other, found := ids[id]; found {
			t.Errorf("%s and %s have the same ID", spec, other)
		}
		ids[id] = spec
	}
}

func TestModelIDInput(t *testing.T) {
	m := predictorModel(t, "m", `{modelType: {name: "<a>&b", version: "1"}, path: p, schemaPath: s, serviceAccountName: acc, gpu: preferred,
		runtime: {name: r}, protocolVersion: grpc-v2,
		storage: {path: q, schemaPath: t, parameters: {z: "1", a: "2"}, key: k, persistentVolumeClaim: {claimName: c, readOnly: true}, s3: {secretKey: x, bucket: why}}}`)
	document := `{"serviceAccountName":"acc","modelType":{"name":"\u003ca\u003e\u0026b","version":"1"},"path":"p","schemaPath":"s","storage":{"path":"q","schemaPath":"t","parameters":{"a":"2","z":"1"},"key":"k","persistentVolumeClaim":{"claimName":"c","readOnly":true},"s3":{"secretKey":"x","bucket":"why"}},"gpu":"preferred","runtime":{"name":"r"},"protocolVersion":"grpc-v2"}`
	digest := sha1.Sum([]byte(document))
	if got, want := m.ID(), "m__ksp-"+hex.EncodeToString(digest[:])[:10]; got != want || got != "m__ksp-e6089a0340" {
		t.Errorf("got ID %s, want %s", got, want)
	}
}

func TestModelKey(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"all fields": {
			`{modelType: {name: tensorflow, version: "1"}, storage: {key: localMinIO, schemaPath: s/schema.json, parameters: {type: s3, bucket: b}}}`,
			`{"storage_key":"localMinIO","storage_params":{"bucket":"b","type":"s3"},"model_type":{"name":"tensorflow","version":"1"},"schema_path":"s/schema.json"}`,
		},
		"deprecated fields": {
			`{modelType: {name: a}, path: p, schemaPath: s, storage: {s3: {secretKey: k, bucket: b}}}`,
			`{"storage_key":"k","storage_params":{"bucket":"b"},"model_type":{"name":"a"},"schema_path":"s"}`,
		},
		"without a bucket": {`{modelType: {name: a}, storage: {s3: {secretKey: k}}}`, `{"storage_key":"k","model_type":{"name":"a"}}`},
		"empty parameters": {`{modelType: {name: a}, storage: {parameters: {}}}`, `{"model_type":{"name":"a"}}`},
		"without storage":  {`{modelType: {name: a}, path: p, schemaPath: s}`, `{"model_type":{"name":"a"}}`},
		"HTML characters":  {`{modelType: {name: "<&>"}}`, `{"model_type":{"name":"\u003c\u0026\u003e"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := predictorModel(t, "m", tc.spec).Key(); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestModelPath(t *testing.T) {
	for spec, want := range map[string]string{
		`{modelType: {name: a}, path: old}`:                                        "", // no path without storage
		`{modelType: {name: a}, path: old, storage: {}}`:                           "old",
		`{modelType: {name: a}, storage: {path: new}}`:                             "new",
		`{modelType: {name: a}, path: old, storage: {s3: {secretKey: k}}}`:         "old",
		`{modelType: {name: a}, path: old, storage: {path: ""}}`:                   "",
		`{modelType: {name: a}, storage: {persistentVolumeClaim: {claimName: c}}}`: "",
	} {
		if got := predictorModel(t, "m", spec).Path(); got != want {
			t.Errorf("%s: got path %q, want %q", spec, got, want)
		}
	}
}

// [modelmesh-14]
func TestModelLabel(t *testing.T) {
	for spec, want := range map[string]string{
		`{modelType: {name: type}}`:                                                                  "mt:type",
		`{modelType: {name: type2, version: "8.3"}}`:                                                 "mt:type2:8.3",
		`{modelType: {name: type2, version: ""}}`:                                                    "mt:type2",
		`{modelType: {name: t}, protocolVersion: grpc-v2}`:                                           "mt:t|pv:grpc-v2",
		`{modelType: {name: t, version: "1"}, protocolVersion: v2}`:                                  "mt:t:1|pv:v2",
		`{modelType: {name: t, version: "1"}, protocolVersion: v2, runtime: {name: target-runtime}}`: "rt:target-runtime",
		`{modelType: {name: t}, runtime: {name: ""}}`:                                                "mt:t", // not pinned
	} {
		if got := predictorModel(t, "m", spec).Label(); got != want {
			t.Errorf("%s: got label %s, want %s", spec, got, want)
		}
	}
}

func TestValidationMessage(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"no storage":                       {`{modelType: {name: a}, path: p, schemaPath: s}`, ""},
		"deprecated":                       {`{modelType: {name: a}, path: p, schemaPath: s, storage: {s3: {secretKey: k, bucket: b}}}`, ""},
		"current":                          {`{modelType: {name: a}, storage: {path: p, schemaPath: s, parameters: {type: s3}, key: k}}`, ""},
		"two paths":                        {`{modelType: {name: a}, path: p, storage: {path: p, persistentVolumeClaim: {claimName: c}}}`, "Only one of spec.path and spec.storage.path can be specified: remove spec.path"},
		"two schema paths":                 {`{modelType: {name: a}, schemaPath: "", storage: {schemaPath: s}}`, "Only one of spec.schemaPath and spec.storage.schemaPath can be specified: remove spec.schemaPath"},
		"claim":                            {`{modelType: {name: a}, storage: {key: k, persistentVolumeClaim: {claimName: c}, s3: {secretKey: k}}}`, "spec.storage.PersistentVolumeClaim is not supported: set type: pvc and name in spec.storage.parameters"},
		"s3 and path":                      {`{modelType: {name: a}, storage: {path: p, s3: {secretKey: k}}}`, "spec.storage.s3 cannot be specified with any other keys in spec.storage: remove s3"},
		"s3 and schema":                    {`{modelType: {name: a}, storage: {schemaPath: p, s3: {secretKey: k}}}`, "spec.storage.s3 cannot be specified with any other keys in spec.storage: remove s3"},
		"s3 and key":                       {`{modelType: {name: a}, storage: {key: p, s3: {secretKey: k}}}`, "spec.storage.s3 cannot be specified with any other keys in spec.storage: remove s3"},
		"s3 and parameters":                {`{modelType: {name: a}, storage: {parameters: {}, s3: {secretKey: k}}}`, "spec.storage.s3 cannot be specified with any other keys in spec.storage: remove s3"},
		"dots in names":                    {`{modelType: {name: a}, storage: {path: a..b/..c/d.., schemaPath: ..., key: .k}}`, ""},
		"path with dots":                   {`{modelType: {name: a}, storage: {path: a/../../b}}`, `spec.storage.path "a/../../b" points outside the storage: remove every '..'`},
		"deprecated path with dots":        {`{modelType: {name: a}, path: .., storage: {}}`, `spec.path ".." points outside the storage: remove every '..'`},
		"schema path with dots":            {`{modelType: {name: a}, storage: {schemaPath: ../s}}`, `spec.storage.schemaPath "../s" points outside the storage: remove every '..'`},
		"deprecated schema path with dots": {`{modelType: {name: a}, schemaPath: ../s, storage: {}}`, `spec.schemaPath "../s" points outside the storage: remove every '..'`},
		"key with dots":                    {`{modelType: {name: a}, storage: {key: ../k}}`, `spec.storage.key "../k" points outside the storage: remove every '..'`},
		"deprecated key with dots":         {`{modelType: {name: a}, storage: {s3: {secretKey: ../k}}}`, `spec.storage.s3.secretKey "../k" points outside the storage: remove every '..'`},
		"claim with dots":                  {`{modelType: {name: a}, storage: {parameters: {type: pvc, name: ..}}}`, `spec.storage.parameters[name] ".." points outside the storage: remove every '..'`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := predictorModel(t, "m", tc.spec).ValidationMessage(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestModelIdentity(t *testing.T) {
	now := metav1.Now()
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "c"}}
	if m := FromPredictor(p); m.Source != "ksp" || m.Name != "a" || m.Namespace != "b" || m.UID != "c" || m.Terminating {
		t.Errorf("FromPredictor returned %+v, want source, name, namespace and UID of the Predictor", m)
	}
	p.DeletionTimestamp = &now
	if !FromPredictor(p).Terminating {
		t.Error("want Terminating for a Predictor that is being deleted")
	}
	s := inferenceService(t, "a", `{model: {modelFormat: {name: x}, storage: {path: p}}}`, v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh)
	s.DeletionTimestamp = &now
	m, _, err := FromInferenceService(s)
	if err != nil || m.Source != "isvc" || m.Name != "a" || m.Namespace != "ns" || m.UID != "uid" || !m.Terminating {
		t.Errorf("got %+v and error %v, want the identity of the InferenceService", m, err)
	}
}

// [modelmesh-71] A Predictor with deprecated fields has the same ID after encoding and decoding.
func TestDeprecatedFieldsKeepID(t *testing.T) {
	bucket, gpu, schema := "b", v1alpha1.GPURequest("required"), "s"
	p := v1alpha1.Predictor{Spec: v1alpha1.PredictorSpec{
		ModelType: v1alpha1.ModelType{Name: "a"}, Path: "p", SchemaPath: &schema, GPU: &gpu,
		Storage: &v1alpha1.Storage{S3: &v1alpha1.S3Storage{SecretKey: "k", Bucket: &bucket}, PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
	}}
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var decoded v1alpha1.Predictor
	if err := yaml.UnmarshalStrict(text, &decoded); err != nil {
		t.Fatal(err)
	}
	if a, b := FromPredictor(&p).ID(), FromPredictor(&decoded).ID(); a != b {
		t.Errorf("the ID %s changed to %s after encoding as\n%s", a, b, text)
	}
}
