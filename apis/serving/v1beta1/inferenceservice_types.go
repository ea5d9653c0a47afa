package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of an InferenceService that ModelMesh reads.
const (
	// AnnotationDeploymentMode chooses who serves the model.
	AnnotationDeploymentMode = "serving.kserve.io/deploymentMode"
	// DeploymentModeModelMesh is the value of [AnnotationDeploymentMode] that chooses ModelMesh.
	DeploymentModeModelMesh = "ModelMesh"
	// AnnotationServingRuntime names the runtime, beside a framework.
	AnnotationServingRuntime = "serving.kserve.io/servingRuntime"
	// AnnotationSecretKey is the key of the storage entry where the storage gives none.
	AnnotationSecretKey = "serving.kserve.io/secretKey"
	// AnnotationSchemaPath is the path of the schema where the storage gives none.
	AnnotationSchemaPath = "serving.kserve.io/schemaPath"
)

// InferenceService is a view of a model with its servers.
//
// +kubebuilder:object:root=true
type InferenceService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the wanted model.
	Spec InferenceServiceSpec `json:"spec,omitzero"`
	// Status is what was observed last.
	Status InferenceServiceStatus `json:"status,omitzero"`
	// Ignored are the fields of the stored spec that have no effect on a model of ModelMesh, by their paths.
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

// InferenceServiceSpec is the wanted model.
type InferenceServiceSpec struct {
	// Predictor is the model.
	Predictor PredictorSpec `json:"predictor"`
	// Transformer stands before the model; KServe runs it.
	Transformer *Component `json:"transformer,omitempty"`
	// Explainer stands beside the model; KServe runs it.
	Explainer *Component `json:"explainer,omitempty"`
}

// Component is what ModelMesh reads of a component that it does not run.
type Component struct {
	// Timeout of a request, in seconds.
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

	// Timeout of a request, in seconds.
	Timeout *int64 `json:"timeout,omitempty"`
}

// ModelSpec is a model of any format.
type ModelSpec struct {
	// ModelFormat by which a runtime is found.
	ModelFormat ModelFormat `json:"modelFormat"`
	// Runtime pins the model to one runtime.
	Runtime *string `json:"runtime,omitempty"`

	PredictorExtension `json:",inline"`
}

// ModelFormat is the format of a model.
type ModelFormat struct {
	// Name of the format, such as sklearn.
	Name string `json:"name"`
	// Version of the format; an opaque word.
	Version *string `json:"version,omitempty"`
}

// PredictorExtension is what models of all forms have.
type PredictorExtension struct {
	// StorageURI is where the model lies.
	StorageURI *string `json:"storageUri,omitempty"`
	// ProtocolVersion of the requests.
	ProtocolVersion *string `json:"protocolVersion,omitempty"`
	// Storage is where the model lies.
	Storage *ModelStorage `json:"storage,omitempty"`
}

// ModelStorage is where a model lies.
type ModelStorage struct {
	// Path of the model in the storage.
	Path *string `json:"path,omitempty"`
	// SchemaPath is the path of a file that describes inputs and outputs.
	SchemaPath *string `json:"schemaPath,omitempty"`
	// Parameters override members of the entry of the storage Secret.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Key of the entry in the storage Secret.
	Key *string `json:"key,omitempty"`
}
