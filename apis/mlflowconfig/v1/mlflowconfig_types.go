package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MLflowConfig chooses the artifact store of the workspace that its namespace
// is. There is one for each namespace, named mlflow.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'mlflow'",message="MLflowConfig resource name must be 'mlflow'"
type MLflowConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted artifact store.
	// +required
	Spec MLflowConfigSpec `json:"spec"`

	// status is what was observed last.
	// +optional
	Status MLflowConfigStatus `json:"status,omitempty"`
}

// Name is the one name that an MLflowConfig may have.
const Name = "mlflow"

// MLflowConfigList is a list of MLflowConfig objects.
//
// +kubebuilder:object:root=true
type MLflowConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MLflowConfig `json:"items"`
}

// MLflowConfigSpec is the artifact store of one workspace.
type MLflowConfigSpec struct {
	// artifactRootSecret names the Secret of the same namespace that describes
	// the bucket: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_S3_BUCKET,
	// AWS_S3_ENDPOINT and optionally AWS_DEFAULT_REGION.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == 'mlflow-artifact-connection'",message="artifactRootSecret must be 'mlflow-artifact-connection'"
	ArtifactRootSecret string `json:"artifactRootSecret"`

	// artifactRootPath is the path below the bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || !self.startsWith('/')",message="artifactRootPath must be relative"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|.*/)[.][.](/.*)?$')",message="artifactRootPath must not contain '..' path segments"
	ArtifactRootPath string `json:"artifactRootPath,omitempty"`
}

// MLflowConfigStatus is what was observed last.
type MLflowConfigStatus struct {
	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the configuration. ReferencesReady is False while its
	// Secret or the bucket in it is missing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionsRef returns the conditions in the status.
func (c *MLflowConfig) ConditionsRef() *[]metav1.Condition { return &c.Status.Conditions }

// ObserveGeneration notes metadata.generation in the status.
func (c *MLflowConfig) ObserveGeneration() { c.Status.ObservedGeneration = c.Generation }
