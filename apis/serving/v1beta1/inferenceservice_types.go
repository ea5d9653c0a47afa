package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of an InferenceService that ModelMesh uses.
const (
	// AnnotationDeploymentMode selects the deployment mode of the model.
	AnnotationDeploymentMode = "serving.kserve.io/deploymentMode"
	// DeploymentModeModelMesh is the value of [AnnotationDeploymentMode] that selects ModelMesh.
	DeploymentModeModelMesh = "ModelMesh"
	// AnnotationServingRuntime is the name of the runtime for a model that is described by a framework.
	AnnotationServingRuntime = "serving.kserve.io/servingRuntime"
	// AnnotationSecretKey is the key of the storage entry if the storage does not specify one.
	AnnotationSecretKey = "serving.kserve.io/secretKey"
	// AnnotationSchemaPath is the path of the schema if the storage does not specify one.
	AnnotationSchemaPath = "serving.kserve.io/schemaPath"
)

// InferenceService is a partial view of KServe's InferenceService, a model with its servers.
//
// +kubebuilder:object:root=true
type InferenceService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the model.
	Spec InferenceServiceSpec `json:"spec,omitzero"`
	// Status is the most recently observed state of the model.
	Status InferenceServiceStatus `json:"status,omitzero"`
	// Ignored lists the paths of up to maxIgnored fields in the stored spec that have no effect in ModelMesh mode.
	Ignored []string `json:"-"`
}

// InferenceServiceList is a list of InferenceService objects.
//
// +kubebuilder:object:root=true
type InferenceServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InferenceService `json:"items"`
}

// InferenceServiceSpec is the desired state of a model.
type InferenceServiceSpec struct {
	// Predictor is the model.
	Predictor PredictorSpec `json:"predictor"`
	// Transformer preprocesses requests to the model. KServe runs it.
	Transformer *Component `json:"transformer,omitempty"`
	// Explainer explains predictions of the model. KServe runs it.
	Explainer *Component `json:"explainer,omitempty"`
}

// Component contains the fields that ModelMesh uses of a transformer or explainer.
type Component struct {
	// Timeout is the timeout of a request, in seconds.
	Timeout *int64 `json:"timeout,omitempty"`
}

// PredictorSpec is the model: either Model or one of the frameworks.
type PredictorSpec struct {
	// Model is a model of any format.
	Model *ModelSpec `json:"model,omitempty"`

	// XGBoost is a model of the format xgboost.
	XGBoost *PredictorExtension `json:"xgboost,omitempty"`
	// LightGBM is a model of the format lightgbm.
	LightGBM *PredictorExtension `json:"lightgbm,omitempty"`
	// SKLearn is a model of the format sklearn.
	SKLearn *PredictorExtension `json:"sklearn,omitempty"`
	// Tensorflow is a model of the format tensorflow.
	Tensorflow *PredictorExtension `json:"tensorflow,omitempty"`
	// ONNX is a model of the format onnx.
	ONNX *PredictorExtension `json:"onnx,omitempty"`
	// PyTorch is a model of the format pytorch.
	PyTorch *PredictorExtension `json:"pytorch,omitempty"`
	// Triton is a model of the format triton.
	Triton *PredictorExtension `json:"triton,omitempty"`
	// PMML is a model of the format pmml.
	PMML *PredictorExtension `json:"pmml,omitempty"`

	// Timeout is the timeout of a request, in seconds.
	Timeout *int64 `json:"timeout,omitempty"`
}

// ModelSpec is a model of any format.
type ModelSpec struct {
	// ModelFormat selects a runtime.
	ModelFormat ModelFormat `json:"modelFormat"`
	// Runtime selects a runtime by name.
	Runtime *string `json:"runtime,omitempty"`

	PredictorExtension `json:",inline"`
}

// ModelFormat is the format of a model.
type ModelFormat struct {
	// Name is the name of the format, for example sklearn.
	Name string `json:"name"`
	// Version is the version of the format, an opaque string.
	Version *string `json:"version,omitempty"`
}

// PredictorExtension contains the fields of all types of models.
type PredictorExtension struct {
	// StorageURI is the URI of the model.
	StorageURI *string `json:"storageUri,omitempty"`
	// ProtocolVersion is the inference protocol of the requests.
	ProtocolVersion *string `json:"protocolVersion,omitempty"`
	// Storage describes where the model is stored.
	Storage *ModelStorage `json:"storage,omitempty"`
}

// ModelStorage describes where a model is stored.
type ModelStorage struct {
	// Path is the path of the model in the storage.
	Path *string `json:"path,omitempty"`
	// SchemaPath is the path of a file that describes inputs and outputs.
	SchemaPath *string `json:"schemaPath,omitempty"`
	// Parameters override values of the entry in the storage Secret.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Key is the key of the entry in the storage Secret.
	Key *string `json:"key,omitempty"`
}
