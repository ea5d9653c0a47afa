package modelmesh

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

// anyStorage is an arbitrary location of a model.
const anyStorage = ", storage: {path: p}"

// [modelmesh-54] [modelmesh-55] [modelmesh-56]
func TestInferenceServiceModelFormat(t *testing.T) {
	m := convertedModel(t, "m", `{model: {modelFormat: {name: sklearn}`+anyStorage+`}}`)
	if s := m.Spec; s.ModelType.Name != "sklearn" || s.ModelType.Version != nil || s.Runtime != nil || s.ProtocolVersion != nil || s.Path != "" || s.SchemaPath != nil {
		t.Errorf("got %+v, want only the format", s)
	}
	m = convertedModel(t, "m", `{model: {modelFormat: {name: sklearn, version: "0"}, runtime: mine, protocolVersion: v2`+anyStorage+`}}`)
	if s := m.Spec; ptr.Deref(s.ModelType.Version, "") != "0" || s.Runtime == nil || s.Runtime.Name != "mine" || ptr.Deref(s.ProtocolVersion, "") != "v2" {
		t.Errorf("got %+v, want version, runtime and protocol", s)
	}
	m = convertedModel(t, "m", `{model: {modelFormat: {name: sklearn}, protocolVersion: ""`+anyStorage+`}}`)
	if m.Spec.ProtocolVersion != nil {
		t.Error("want protocolVersion unset for an empty protocol")
	}
	m = convertedModel(t, "m", `{sklearn: {protocolVersion: grpc-v2`+anyStorage+`}}`, v1beta1.AnnotationServingRuntime, "mine")
	if s := m.Spec; s.ModelType.Name != "sklearn" || s.ModelType.Version != nil || s.Runtime == nil || s.Runtime.Name != "mine" || ptr.Deref(s.ProtocolVersion, "") != "grpc-v2" {
		t.Errorf("got %+v, want format, runtime and protocol of the framework", s)
	}
}

func TestInferenceServiceFrameworks(t *testing.T) {
	order := []string{"xgboost", "lightgbm", "sklearn", "tensorflow", "onnx", "pytorch", "triton", "pmml"}
	for i, name := range order {
		m := convertedModel(t, "m", `{`+name+`: {storage: {path: p}}}`)
		if m.Spec.ModelType.Name != name || m.Spec.Runtime != nil {
			t.Errorf("%s: unexpected Spec: %+v", name, m.Spec)
		}
		if i > 0 { // the first in order is used
			m = convertedModel(t, "m", `{`+name+`: {storage: {path: p}}, `+order[i-1]+`: {storage: {path: q}}}`)
			if m.Spec.ModelType.Name != order[i-1] || *m.Spec.Storage.Path != "q" {
				t.Errorf("%s before %s: %+v", order[i-1], name, m.Spec)
			}
		}
	}
}

// [modelmesh-57] [modelmesh-58] [modelmesh-59] [modelmesh-60] [modelmesh-65]
func TestInferenceServiceErrors(t *testing.T) {
	mode := []string{v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh}
	for name, tc := range map[string]struct {
		spec        string
		annotations []string
		managed     bool
		want        string
	}{
		"no mode":               {`{model: {modelFormat: {name: a}` + anyStorage + `}}`, nil, false, ""},
		"another mode":          {`{model: {modelFormat: {name: a}` + anyStorage + `}}`, []string{v1beta1.AnnotationDeploymentMode, "RawDeployment"}, false, ""},
		"another mode, invalid": {`{}`, []string{v1beta1.AnnotationDeploymentMode, "modelmesh"}, false, ""},
		"empty":                 {`{}`, mode, true, "has neither a model nor a framework"},
		"other framework":       {`{huggingface: {storageUri: s3://b/p}}`, mode, true, "has neither a model nor a framework"},
		"model and framework":   {`{model: {modelFormat: {name: a}` + anyStorage + `}, onnx: {}}`, mode, true, "cannot have both the model spec and a framework: remove spec.predictor.onnx"},
		"runtime twice":         {`{model: {modelFormat: {name: a}` + anyStorage + `}}`, append([]string{v1beta1.AnnotationServingRuntime, "r"}, mode...), true, "cannot have both the model spec and the runtime annotation"},
		"no storage":            {`{model: {modelFormat: {name: a}}}`, mode, true, "set storageUri or storage.path"},
		"key only":              {`{onnx: {storage: {key: k}}}`, mode, true, "set storageUri or storage.path"},
		"URI and path":          {`{model: {modelFormat: {name: a}, storageUri: s3://b/p, storage: {path: q}}}`, mode, true, `has both storageUri "s3://b/p" and storage.path "q"`},
		"unknown scheme":        {`{model: {modelFormat: {name: a}, storageUri: hdfs://b/p}}`, mode, true, "unsupported storageUri scheme"},
		"fragment":              {`{model: {modelFormat: {name: a}, storageUri: "s3://b/run#3/model"}}`, mode, true, "would be lost"},
		"query":                 {`{model: {modelFormat: {name: a}, storageUri: "gs://b/p?versionId=3"}}`, mode, true, "would be lost"},
		"user":                  {`{model: {modelFormat: {name: a}, storageUri: "pvc://u:p@claim/p"}}`, mode, true, "would be lost"},
		"port":                  {`{model: {modelFormat: {name: a}, storageUri: "s3://bucket:9000/p"}}`, mode, true, "would be lost"},
		"no scheme":             {`{model: {modelFormat: {name: a}, storageUri: b/p}}`, mode, true, "unsupported storageUri scheme"},
		"invalid URI":           {`{model: {modelFormat: {name: a}, storageUri: "s3://b/%zz"}}`, mode, true, "parsing storageUri"},
		"invalid port":          {`{model: {modelFormat: {name: a}, storageUri: "s3://b:c/d"}}`, mode, true, "parsing storageUri"},
	} {
		t.Run(name, func(t *testing.T) {
			m, managed, err := FromInferenceService(inferenceService(t, "name", tc.spec, tc.annotations...))
			if managed != tc.managed || (err == nil) != (tc.want == "") {
				t.Fatalf("got managed %t and error %v", managed, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "InferenceService name")) {
				t.Errorf("error %v does not contain %q", err, tc.want)
			}
			if err != nil && (m.Name != "name" || m.Source != SourceInferenceService || m.UID != "uid") {
				t.Errorf("unexpected identity of the model: %+v", m)
			}
		})
	}
}

// [modelmesh-61] [modelmesh-62] [modelmesh-63] [modelmesh-64] [modelmesh-92]
func TestInferenceServiceStorage(t *testing.T) {
	for name, tc := range map[string]struct {
		block, path string
		parameters  map[string]string
	}{
		"all four":                 {`storage: {key: k, path: p, schemaPath: s, parameters: {bucket: b}}`, "p", map[string]string{"bucket": "b"}},
		"path only":                {`storage: {path: p}`, "p", map[string]string{}},
		"empty path":               {`storage: {path: ""}`, "", map[string]string{}},
		"s3":                       {`storageUri: "s3://uri-bucket/some/path/in/the/uri"`, "some/path/in/the/uri", map[string]string{"type": "s3", "bucket": "uri-bucket"}},
		"s3, bucket only":          {`storageUri: "s3://uri-bucket"`, "", map[string]string{"type": "s3", "bucket": "uri-bucket"}},
		"gs":                       {`storageUri: "gs://b/p/q"`, "p/q", map[string]string{"type": "gcs", "bucket": "b"}},
		"pvc":                      {`storageUri: "pvc://claim/p/q"`, "p/q", map[string]string{"type": "pvc", "name": "claim"}},
		"URI overrides parameters": {`storageUri: "s3://uri-bucket/p", storage: {parameters: {type: override_me, bucket: b, region: r}}`, "p", map[string]string{"type": "s3", "bucket": "uri-bucket", "region": "r"}},
		"azure":                    {`storageUri: "https://az-account.blob.core.windows.net/az-container/some/path/in/the/uri"`, "some/path/in/the/uri", map[string]string{"type": "azure", "account_name": "az-account", "container": "az-container"}},
		"azure, no path":           {`storageUri: "http://a.blob.core.windows.net/c"`, "", map[string]string{"type": "azure", "account_name": "a", "container": "c"}},
		"http":                     {`storageUri: "http://example.com/models/a.onnx"`, "models/a.onnx", map[string]string{"type": "http", "url": "http://example.com"}},
		"https and a query":        {`storageUri: "https://example.com:8443/m%2Fa?sig=x&y=1"`, "m/a", map[string]string{"type": "http", "url": "https://example.com:8443?sig=x&y=1"}},
		"not azure":                {`storageUri: "https://blob.core.windows.net.example.com/c/p"`, "c/p", map[string]string{"type": "http", "url": "https://blob.core.windows.net.example.com"}},
		"an empty URI":             {`storageUri: "", storage: {path: p}`, "p", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := convertedModel(t, "m", `{model: {modelFormat: {name: a}, `+tc.block+`}}`).Spec.Storage
			if s.Path == nil || *s.Path != tc.path || !maps.Equal(s.Parameters, tc.parameters) || s.Parameters == nil {
				t.Errorf("unexpected path %q or parameters %v", ptr.Deref(s.Path, ""), s.Parameters)
			}
			if name == "all four" && (ptr.Deref(s.Key, "") != "k" || ptr.Deref(s.SchemaPath, "") != "s") {
				t.Errorf("unexpected key %q or schema path %q", ptr.Deref(s.Key, ""), ptr.Deref(s.SchemaPath, ""))
			}
		})
	}
}

func TestInferenceServiceStorageAnnotations(t *testing.T) {
	annotations := []string{v1beta1.AnnotationSecretKey, "from-annotation", v1beta1.AnnotationSchemaPath, "schema"}
	s := convertedModel(t, "m", `{sklearn: {storageUri: "s3://b/p"}}`, annotations...).Spec.Storage
	if ptr.Deref(s.Key, "") != "from-annotation" || ptr.Deref(s.SchemaPath, "") != "schema" {
		t.Errorf("unexpected key %q or schema path %q", ptr.Deref(s.Key, ""), ptr.Deref(s.SchemaPath, ""))
	}
	s = convertedModel(t, "m", `{model: {modelFormat: {name: a}, storage: {path: p, key: k, schemaPath: q}}}`, annotations...).Spec.Storage
	if ptr.Deref(s.Key, "") != "k" || ptr.Deref(s.SchemaPath, "") != "q" {
		t.Errorf("got key %q and schema path %q, want the fields instead of the annotations", ptr.Deref(s.Key, ""), ptr.Deref(s.SchemaPath, ""))
	}
	s = convertedModel(t, "m", `{sklearn: {storageUri: "s3://b/p"}}`).Spec.Storage
	if s.Key != nil || s.SchemaPath != nil {
		t.Errorf("got %+v, want no key and no schema path", s)
	}
}

// Parameters of the URI are not added to the object, which belongs to the cache.
func TestConversionDoesNotModifyObject(t *testing.T) {
	s := inferenceService(t, "m", `{model: {modelFormat: {name: a}, storageUri: "s3://b/p", storage: {parameters: {x: "1"}}}}`, v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh)
	if _, _, err := FromInferenceService(s); err != nil {
		t.Fatal(err)
	}
	if got := s.Spec.Predictor.Model.Storage.Parameters; len(got) != 1 {
		t.Errorf("the parameters of the object were changed to %v", got)
	}
}
