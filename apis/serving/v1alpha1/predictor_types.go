package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Predictor describes a model that ModelMesh serves with the runtimes of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=pred,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.modelType.name`
// +kubebuilder:printcolumn:name="Available",type=boolean,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="ActiveModel",type=string,JSONPath=`.status.activeModelState`
// +kubebuilder:printcolumn:name="TargetModel",type=string,JSONPath=`.status.targetModelState`
// +kubebuilder:printcolumn:name="Transition",type=string,JSONPath=`.status.transitionStatus`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Runtime",type=string,priority=1,JSONPath=`.spec.runtime.name`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.grpcEndpoint`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Predictor struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired model and where it is stored. A change loads the new model first; the old model answers
	// requests until the new one is loaded.
	// +optional
	Spec PredictorSpec `json:"spec,omitzero"`

	// status is the most recently observed state of the model.
	// +optional
	// +kubebuilder:default={transitionStatus: UpToDate, activeModelState: Pending, targetModelState: "", available: false, failedCopies: 0, totalCopies: 0}
	Status PredictorStatus `json:"status,omitzero"`
}

// PredictorList is a list of Predictor objects.
//
// +kubebuilder:object:root=true
type PredictorList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Predictor `json:"items"`
}

// PredictorSpec defines the desired model. ModelMesh identifies a registered model by a hash of the JSON of its
// spec. Therefore, the order of the fields, the fields that are omitted when empty, and path, which is always written,
// must not change.
type PredictorSpec struct {
	// serviceAccountName has no effect.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`

	// modelType is the format of the model. Unless spec.runtime is set, it selects a runtime that lists the format with
	// autoSelect: true.
	ModelType ModelType `json:"modelType"`

	// path is the path of the model in its storage. It is used only if spec.storage is set without a path. Deprecated: use
	// storage.path instead.
	// +optional
	Path string `json:"path"`

	// schemaPath is the path of a file that describes the inputs and outputs of the model. Deprecated: use
	// storage.schemaPath instead.
	// +optional
	SchemaPath *string `json:"schemaPath,omitempty"`

	// storage describes where the model is stored.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// gpu has no effect. GPUs are requested in the resources of the containers of the runtime.
	// +optional
	GPU *GPURequest `json:"gpu,omitempty"`

	// runtime selects a runtime by name. The format and the protocol of the model are then not compared with those of the
	// runtime.
	// +optional
	Runtime *RuntimeRef `json:"runtime,omitempty"`

	// protocolVersion is the inference protocol that the runtime must support, for example grpc-v2. If it is empty, any
	// protocol is accepted.
	// +optional
	ProtocolVersion *string `json:"protocolVersion,omitempty"`
}

// ModelType is the format of a model.
type ModelType struct {
	// name is the name of the format, for example sklearn.
	Name string `json:"name"`

	// version is the version of the format, for example "0". It must equal a version that the runtime lists. If it is
	// empty, any version is accepted.
	// +optional
	Version *string `json:"version,omitempty"`
}

// GPURequest has no effect.
//
// +kubebuilder:validation:Enum=required;preferred
type GPURequest string

// RuntimeRef is a reference to a runtime.
type RuntimeRef struct {
	// name is the name of a ServingRuntime in the same namespace or of a ClusterServingRuntime. If it is empty, the
	// runtime is selected by the format of the model.
	Name string `json:"name"`
}

// Storage describes where a model is stored. An empty map of parameters differs from a missing map, and both must
// survive decoding and encoding.
type Storage struct {
	// path is the path of the model in the storage, for example sklearn/mnist-svm.joblib.
	// +optional
	Path *string `json:"path,omitempty"`

	// schemaPath is the path of a file in the storage that describes the inputs and outputs of the model.
	// +optional
	SchemaPath *string `json:"schemaPath,omitempty"`

	// parameters override values of the selected entry of the storage Secret, for example type, bucket or name.
	// +optional
	Parameters map[string]string `json:"parameters,omitzero"`

	// key selects an entry of the storage Secret, which is named storage-config by default. If it is empty, the entry
	// default_TYPE is used if parameters contain a type, and otherwise the entry default.
	// +optional
	Key *string `json:"key,omitempty"`

	// persistentVolumeClaim is not supported, and a Predictor that sets it is invalid. To load a model from a
	// PersistentVolumeClaim, set parameters to type=pvc and name=CLAIM instead.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// s3 selects a bucket. Deprecated: use key and parameters instead.
	// +optional
	S3 *S3Storage `json:"s3,omitempty"`
}

// S3Storage selects a bucket and its credentials.
type S3Storage struct {
	// secretKey is the key of the entry in the storage Secret.
	SecretKey string `json:"secretKey"`

	// bucket is the name of the bucket. Defaults to the bucket of the entry.
	// +optional
	Bucket *string `json:"bucket,omitempty"`
}
