package modelmesh

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

// FromInferenceService returns the model of an InferenceService. False says that ModelMesh is not meant to serve it. An error
// says why it cannot be converted, in words for its user; the model then has its identity and no spec.
func FromInferenceService(s *v1beta1.InferenceService) (Model, bool, error) {
	if s.Annotations[v1beta1.AnnotationDeploymentMode] != v1beta1.DeploymentModeModelMesh {
		return Model{}, false, nil
	}
	m := Model{
		Source: SourceInferenceService, Namespace: s.Namespace, Name: s.Name, UID: s.UID, Terminating: !s.DeletionTimestamp.IsZero(),
	}
	spec, err := convertPredictor(&s.Spec.Predictor, s.Annotations)
	if err != nil {
		return m, true, fmt.Errorf("the predictor of InferenceService %s: %w", s.Name, err)
	}
	m.Spec = spec
	return m, true, nil
}

// convert turns a predictor in either form into the spec of a Predictor.
func convertPredictor(p *v1beta1.PredictorSpec, annotations map[string]string) (v1alpha1.PredictorSpec, error) {
	name, block := frameworkOf(p)
	var spec v1alpha1.PredictorSpec
	switch {
	case p.Model != nil && block != nil:
		return spec, fmt.Errorf("cannot have both the model spec and a framework: remove spec.predictor.%s", name)
	case p.Model == nil && block == nil:
		return spec, errors.New("has neither a model nor a framework that ModelMesh knows: set spec.predictor.model")
	case p.Model != nil:
		if r, found := annotations[v1beta1.AnnotationServingRuntime]; found {
			return spec, fmt.Errorf("cannot have both the model spec and the runtime annotation %s=%q: name the runtime in spec.predictor.model.runtime", v1beta1.AnnotationServingRuntime, r)
		}
		spec.ModelType = v1alpha1.ModelType{Name: p.Model.ModelFormat.Name, Version: p.Model.ModelFormat.Version}
		if p.Model.Runtime != nil {
			spec.Runtime = &v1alpha1.RuntimeRef{Name: *p.Model.Runtime}
		}
		block = &p.Model.PredictorExtension
	default:
		spec.ModelType = v1alpha1.ModelType{Name: name}
		if r, found := annotations[v1beta1.AnnotationServingRuntime]; found {
			spec.Runtime = &v1alpha1.RuntimeRef{Name: r}
		}
	}
	if stringValue(block.ProtocolVersion) != "" {
		spec.ProtocolVersion = block.ProtocolVersion
	}
	storage, err := convertStorage(block, annotations)
	spec.Storage = storage
	return spec, err
}

// framework returns the first block of the older form that is set, with its name.
func frameworkOf(p *v1beta1.PredictorSpec) (string, *v1beta1.PredictorExtension) {
	for _, f := range []struct {
		name  string
		block *v1beta1.PredictorExtension
	}{
		{"xgboost", p.XGBoost},
		{"lightgbm", p.LightGBM},
		{"sklearn", p.SKLearn},
		{"tensorflow", p.Tensorflow},
		{"onnx", p.ONNX},
		{"pytorch", p.PyTorch},
		{"triton", p.Triton},
		{"pmml", p.PMML},
	} {
		if f.block != nil {
			return f.name, f.block
		}
	}
	return "", nil
}

// storageOf always says a path and parameters, even empty ones: they are part of the id.
func convertStorage(block *v1beta1.PredictorExtension, annotations map[string]string) (*v1alpha1.Storage, error) {
	given := v1beta1.ModelStorage{}
	if block.Storage != nil {
		given = *block.Storage
	}
	out := &v1alpha1.Storage{
		Key: fieldOrAnnotation(given.Key, annotations, v1beta1.AnnotationSecretKey), Parameters: map[string]string{},
		SchemaPath: fieldOrAnnotation(given.SchemaPath, annotations, v1beta1.AnnotationSchemaPath),
	}
	maps.Copy(out.Parameters, given.Parameters)
	uri := stringValue(block.StorageURI)
	switch {
	case uri != "" && given.Path != nil:
		return nil, fmt.Errorf("has both storageUri %q and storage.path %q: remove one of them", uri, *given.Path)
	case uri != "":
		parameters, path, err := parseStorageURI(uri)
		if err != nil {
			return nil, err
		}
		maps.Copy(out.Parameters, parameters)
		out.Path = &path
	case given.Path != nil:
		out.Path = given.Path
	default:
		return nil, errors.New("says nowhere where the model is: set storageUri or storage.path")
	}
	return out, nil
}

// annotated is the field if it is set, else the annotation if there is one.
func fieldOrAnnotation(field *string, annotations map[string]string, name string) *string {
	if field != nil {
		return field
	}
	if v, found := annotations[name]; found {
		return &v
	}
	return nil
}

// azureHosts end the names of hosts that serve Azure's blobs.
const azureBlobSuffix = ".blob.core.windows.net"

// fromURI reads a storageUri as what the puller understands: storage parameters and a path. The error names the URI and what
// would be right.
func parseStorageURI(uri string) (parameters map[string]string, path string, err error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, "", fmt.Errorf("parsing storageUri %q: %w: give one such as s3://bucket/path", uri, err)
	}
	path = strings.TrimPrefix(u.Path, "/")
	if slices.Contains([]string{"pvc", "s3", "gs"}, u.Scheme) && (u.User != nil || u.Port() != "" || strings.ContainsAny(uri, "?#")) {
		return nil, "", fmt.Errorf("storageUri %q has a user, a port, a query or a fragment, which would be lost: name a data connection in storage.key "+
			"and write the path, where # and ? are allowed, to storage.path", uri)
	}
	switch u.Scheme {
	case "pvc":
		return map[string]string{"type": "pvc", "name": u.Host}, path, nil
	case "s3":
		return map[string]string{"type": "s3", "bucket": u.Host}, path, nil
	case "gs":
		return map[string]string{"type": "gcs", "bucket": u.Host}, path, nil
	case "http", "https":
		if strings.HasSuffix(u.Hostname(), azureBlobSuffix) {
			account, _, _ := strings.Cut(u.Host, ".")
			container, path, _ := strings.Cut(path, "/")
			return map[string]string{"type": "azure", "account_name": account, "container": container}, path, nil
		}
		server := *u
		server.Path, server.RawPath = "", ""
		return map[string]string{"type": "http", "url": server.String()}, path, nil
	}
	return nil, "", fmt.Errorf("unsupported storageUri scheme %q in %q: use pvc, s3, gs, http or https", u.Scheme, uri)
}
