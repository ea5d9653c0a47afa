package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MLflowConfig configures where an MLflow workspace stores artifacts and archived traces. The workspace is the
// namespace of the object. A namespace has at most one MLflowConfig, and its name is mlflow.
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

	// spec overrides settings of the MLflow server for this workspace.
	// +required
	Spec MLflowConfigSpec `json:"spec"`

	// status is the most recently observed state of the MLflowConfig.
	// +optional
	Status MLflowConfigStatus `json:"status,omitempty"`
}

// Name is the only valid name of an MLflowConfig.
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

// MLflowConfigSpec overrides settings of the MLflow server for one workspace. The settings of the server apply to all
// fields that are not set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.artifactRootPath) || size(self.artifactRootPath) == 0 || has(self.artifactRootSecret)",message="artifactRootPath needs artifactRootSecret, which names the bucket that the path is in: set artifactRootSecret to 'mlflow-artifact-connection', or remove artifactRootPath"
// +kubebuilder:validation:XValidation:rule="!has(self.archiveRootPath) || size(self.archiveRootPath) == 0 || has(self.archiveRootSecret)",message="archiveRootPath needs archiveRootSecret, which names the bucket that the path is in: set archiveRootSecret to 'mlflow-archive-secret', or remove archiveRootPath"
type MLflowConfigSpec struct {
	// artifactRootSecret is the name of a Secret in the same namespace that describes the bucket for artifacts. The only
	// valid name is mlflow-artifact-connection. The keys are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_S3_BUCKET,
	// AWS_S3_ENDPOINT and, optionally, AWS_DEFAULT_REGION. The server uses only AWS_S3_BUCKET and its own credentials. If
	// the Secret or the bucket name is missing, artifacts are stored in the bucket of the server.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == 'mlflow-artifact-connection'",message="artifactRootSecret must be 'mlflow-artifact-connection'"
	ArtifactRootSecret string `json:"artifactRootSecret,omitempty"`

	// artifactRootPath is a relative path in the bucket below which artifacts are stored, for example experiments. It
	// requires artifactRootSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || !self.startsWith('/')",message="artifactRootPath must be relative"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|.*/)[.][.](/.*)?$')",message="artifactRootPath must not contain '..' path segments"
	ArtifactRootPath string `json:"artifactRootPath,omitempty"`

	// archiveRootSecret is the name of a Secret in the same namespace whose key AWS_S3_BUCKET is the bucket for archived
	// traces. The only valid name is mlflow-archive-secret. The credentials are those of the server. If the Secret or the
	// bucket name is missing, archived traces are stored in the bucket of the server. It requires MLflow 3.13 or later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == 'mlflow-archive-secret'",message="archiveRootSecret must be 'mlflow-archive-secret'"
	ArchiveRootSecret string `json:"archiveRootSecret,omitempty"`

	// archiveRootPath is a relative path in the bucket below which traces are archived, for example traces. It requires
	// archiveRootSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || !self.startsWith('/')",message="archiveRootPath must be relative"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|.*/)[.][.](/.*)?$')",message="archiveRootPath must not contain '..' path segments"
	ArchiveRootPath string `json:"archiveRootPath,omitempty"`

	// traceArchivalRetention is the age at which traces of this workspace are archived. It overrides
	// spec.traceArchival.retention of the MLflow object. The value is a number greater than zero with the unit m
	// (minutes), h (hours) or d (days), for example 30d. It requires MLflow 3.13 or later.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*[mhd]$`
	TraceArchivalRetention string `json:"traceArchivalRetention,omitempty"`
}

// MLflowConfigStatus is the most recently observed state of the MLflowConfig.
type MLflowConfigStatus struct {
	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the MLflowConfig. ReferencesReady is False if a referenced
	// Secret does not exist or contains no bucket name. Ready has the same value.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionsRef returns a pointer to the conditions in the status.
func (c *MLflowConfig) ConditionsRef() *[]metav1.Condition { return &c.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the current generation.
func (c *MLflowConfig) ObserveGeneration() { c.Status.ObservedGeneration = c.Generation }
