package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MLflowConfig chooses where the workspace that its namespace is keeps
// artifacts and archived traces. There is one for each namespace, named mlflow.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mlfc,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'mlflow'",message="MLflowConfig resource name must be 'mlflow'"
type MLflowConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the workspace wants otherwise than the server.
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

// MLflowConfigSpec says what one workspace has of its own. What it leaves out
// is that of the server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.artifactRootPath) || size(self.artifactRootPath) == 0 || has(self.artifactRootSecret)",message="artifactRootPath needs artifactRootSecret, which names the bucket that the path is in: set artifactRootSecret to 'mlflow-artifact-connection', or remove artifactRootPath"
// +kubebuilder:validation:XValidation:rule="!has(self.archiveRootPath) || size(self.archiveRootPath) == 0 || has(self.archiveRootSecret)",message="archiveRootPath needs archiveRootSecret, which names the bucket that the path is in: set archiveRootSecret to 'mlflow-archive-secret', or remove archiveRootPath"
type MLflowConfigSpec struct {
	// artifactRootSecret names the Secret of the same namespace that describes
	// the bucket for artifacts: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
	// AWS_S3_BUCKET, AWS_S3_ENDPOINT and optionally AWS_DEFAULT_REGION.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == 'mlflow-artifact-connection'",message="artifactRootSecret must be 'mlflow-artifact-connection'"
	ArtifactRootSecret string `json:"artifactRootSecret,omitempty"`

	// artifactRootPath is the path below that bucket. It needs
	// artifactRootSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || !self.startsWith('/')",message="artifactRootPath must be relative"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|.*/)[.][.](/.*)?$')",message="artifactRootPath must not contain '..' path segments"
	ArtifactRootPath string `json:"artifactRootPath,omitempty"`

	// archiveRootSecret names the Secret of the same namespace whose
	// AWS_S3_BUCKET is the bucket for archived traces. The credentials are those
	// of the server. It has an effect with MLflow 3.13 or later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == 'mlflow-archive-secret'",message="archiveRootSecret must be 'mlflow-archive-secret'"
	ArchiveRootSecret string `json:"archiveRootSecret,omitempty"`

	// archiveRootPath is the path below that bucket. It needs archiveRootSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || !self.startsWith('/')",message="archiveRootPath must be relative"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|.*/)[.][.](/.*)?$')",message="archiveRootPath must not contain '..' path segments"
	ArchiveRootPath string `json:"archiveRootPath,omitempty"`

	// traceArchivalRetention is the age at which traces of the workspace are
	// archived, in place of spec.traceArchival.retention of the MLflow: a number
	// above zero with the unit m, h or d, such as 30d.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*[mhd]$`
	TraceArchivalRetention string `json:"traceArchivalRetention,omitempty"`
}

// MLflowConfigStatus is what was observed last.
type MLflowConfigStatus struct {
	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the configuration. ReferencesReady is False while a
	// Secret that it names, or the bucket in it, is missing, and Ready
	// says the same.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionsRef returns the conditions in the status.
func (c *MLflowConfig) ConditionsRef() *[]metav1.Condition { return &c.Status.Conditions }

// ObserveGeneration notes metadata.generation in the status.
func (c *MLflowConfig) ObserveGeneration() { c.Status.ObservedGeneration = c.Generation }
