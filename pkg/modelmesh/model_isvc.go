package modelmesh

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

// IsModelMesh reports whether the deployment mode of an InferenceService is ModelMesh.
func IsModelMesh(s *v1beta1.InferenceService) bool {
	return s.Annotations[v1beta1.AnnotationDeploymentMode] == v1beta1.DeploymentModeModelMesh
}

// FromInferenceService returns the model of an InferenceService, or false if ModelMesh does not manage it. If the spec cannot be
// converted, it returns an error for the user and a model without spec.
func FromInferenceService(s *v1beta1.InferenceService) (Model, bool, error) {
	if !IsModelMesh(s) {
		return Model{}, false, nil
	}
	model := Model{
		Source: SourceInferenceService, Namespace: s.Namespace, Name: s.Name, UID: s.UID, Terminating: !s.DeletionTimestamp.IsZero(),
	}
	spec, err := convertPredictor(&s.Spec.Predictor, s.Annotations)
	if err != nil {
		return model, true, fmt.Errorf("the predictor of InferenceService %s: %w", s.Name, err)
	}
	model.Spec = spec
	return model, true, nil
}

// convertPredictor converts both forms of a predictor, model and framework, to the spec of a Predictor.
func convertPredictor(p *v1beta1.PredictorSpec, annotations map[string]string) (v1alpha1.PredictorSpec, error) {
	name, extension := frameworkOf(p)
	var spec v1alpha1.PredictorSpec
	switch {
	case p.Model != nil && extension != nil:
		return spec, fmt.Errorf("cannot have both the model spec and a framework: remove spec.predictor.%s", name)
	case p.Model == nil && extension == nil:
		return spec, errors.New("has neither a model nor a framework that ModelMesh knows: set spec.predictor.model")
	case p.Model != nil:
		if r, found := annotations[v1beta1.AnnotationServingRuntime]; found {
			return spec, fmt.Errorf("cannot have both the model spec and the runtime annotation %s=%q: name the runtime in spec.predictor.model.runtime", v1beta1.AnnotationServingRuntime, r)
		}
		spec.ModelType = v1alpha1.ModelType{Name: p.Model.ModelFormat.Name, Version: p.Model.ModelFormat.Version}
		if p.Model.Runtime != nil {
			spec.Runtime = &v1alpha1.RuntimeRef{Name: *p.Model.Runtime}
		}
		extension = &p.Model.PredictorExtension
	default:
		spec.ModelType = v1alpha1.ModelType{Name: name}
		if r, found := annotations[v1beta1.AnnotationServingRuntime]; found {
			spec.Runtime = &v1alpha1.RuntimeRef{Name: r}
		}
	}
	if ptr.Deref(extension.ProtocolVersion, "") != "" {
		spec.ProtocolVersion = extension.ProtocolVersion
	}
	storage, err := convertStorage(extension, annotations)
	spec.Storage = storage
	return spec, err
}

// frameworkOf returns the first framework that is set, and its name.
func frameworkOf(p *v1beta1.PredictorSpec) (string, *v1beta1.PredictorExtension) {
	for _, framework := range []struct {
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
		if framework.block != nil {
			return framework.name, framework.block
		}
	}
	return "", nil
}

// convertStorage converts the location of a model. It always sets path and parameters, even if empty, because the model ID depends on them.
func convertStorage(extension *v1beta1.PredictorExtension, annotations map[string]string) (*v1alpha1.Storage, error) {
	storageSpec := v1beta1.ModelStorage{}
	if extension.Storage != nil {
		storageSpec = *extension.Storage
	}
	storage := &v1alpha1.Storage{
		Key: fieldOrAnnotation(storageSpec.Key, annotations, v1beta1.AnnotationSecretKey), Parameters: map[string]string{},
		SchemaPath: fieldOrAnnotation(storageSpec.SchemaPath, annotations, v1beta1.AnnotationSchemaPath),
	}
	maps.Copy(storage.Parameters, storageSpec.Parameters)
	uri := ptr.Deref(extension.StorageURI, "")
	switch {
	case uri != "" && storageSpec.Path != nil:
		return nil, fmt.Errorf("has both storageUri %q and storage.path %q: remove one of them", uri, *storageSpec.Path)
	case uri != "":
		parameters, path, err := parseStorageURI(uri)
		if err != nil {
			return nil, err
		}
		maps.Copy(storage.Parameters, parameters)
		storage.Path = &path
	case storageSpec.Path != nil:
		storage.Path = storageSpec.Path
	default:
		return nil, errors.New("has no location of the model: set storageUri or storage.path")
	}
	return storage, nil
}

// fieldOrAnnotation returns the field, or the annotation if the field is nil.
func fieldOrAnnotation(field *string, annotations map[string]string, name string) *string {
	if field != nil {
		return field
	}
	if v, found := annotations[name]; found {
		return &v
	}
	return nil
}

// azureBlobSuffix is the suffix of the hosts of Azure Blob Storage.
const azureBlobSuffix = ".blob.core.windows.net"

// parseStorageURI converts a storageUri to storage parameters and a path. Its errors quote the URI and suggest a fix.
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
