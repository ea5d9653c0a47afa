package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Predictor is a model that the runtimes of its namespace serve.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=pred,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.modelType.name`
// +kubebuilder:printcolumn:name="Available",type=boolean,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="ActiveModel",type=string,JSONPath=`.status.activeModelState`
// +kubebuilder:printcolumn:name="TargetModel",type=string,JSONPath=`.status.targetModelState`
// +kubebuilder:printcolumn:name="Transition",type=string,JSONPath=`.status.transitionStatus`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.grpcEndpoint`
type Predictor struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted model.
	// +optional
	Spec PredictorSpec `json:"spec,omitzero"`

	// status is what was observed last.
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

// PredictorSpec is the wanted model. Identities of registered models are hashes over its JSON (section 5.10 of the reference):
// the order of the fields, what is left out when it is not set, and that path is always written, must stay.
type PredictorSpec struct {
	// serviceAccountName has no effect.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`

	// modelType is the format of the model, by which a runtime is found.
	ModelType ModelType `json:"modelType"`

	// path of the model in the storage. Deprecated: use storage.path.
	// +optional
	Path string `json:"path"`

	// schemaPath is the path of a file that describes inputs and outputs. Deprecated: use storage.schemaPath.
	// +optional
	SchemaPath *string `json:"schemaPath,omitempty"`

	// storage tells where the model lies.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// gpu has no effect: a runtime asks for GPUs in the resources of its containers.
	// +optional
	GPU *GPURequest `json:"gpu,omitempty"`

	// runtime pins the model to one runtime.
	// +optional
	Runtime *RuntimeRef `json:"runtime,omitempty"`

	// protocolVersion of the requests that the model has to answer, such as grpc-v2.
	// +optional
	ProtocolVersion *string `json:"protocolVersion,omitempty"`
}

// ModelType is the format of a model.
type ModelType struct {
	// name of the format, such as sklearn.
	Name string `json:"name"`

	// version of the format; an opaque word.
	// +optional
	Version *string `json:"version,omitempty"`
}

// GPURequest was meant to say whether a model needs a GPU.
//
// +kubebuilder:validation:Enum=required;preferred
type GPURequest string

// RuntimeRef names a runtime.
type RuntimeRef struct {
	// name of a ServingRuntime of the namespace or of a ClusterServingRuntime; empty for any.
	Name string `json:"name"`
}

// Storage tells where a model lies. An empty map of parameters differs from none: both have to survive a round trip.
type Storage struct {
	// path of the model in the storage.
	// +optional
	Path *string `json:"path,omitempty"`

	// schemaPath is the path of a file that describes inputs and outputs.
	// +optional
	SchemaPath *string `json:"schemaPath,omitempty"`

	// parameters override members of the entry of the storage Secret, such as type, bucket or name.
	// +optional
	Parameters map[string]string `json:"parameters,omitzero"`

	// key of the entry in the storage Secret.
	// +optional
	Key *string `json:"key,omitempty"`

	// persistentVolumeClaim is not supported: set parameters type=pvc and name=<claim> instead.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// s3 is a bucket. Deprecated: use key and parameters.
	// +optional
	S3 *S3Storage `json:"s3,omitempty"`
}

// S3Storage is a bucket with the credentials for it.
type S3Storage struct {
	// secretKey is the key of the entry in the storage Secret.
	SecretKey string `json:"secretKey"`

	// bucket overrides the one of the entry.
	// +optional
	Bucket *string `json:"bucket,omitempty"`
}
