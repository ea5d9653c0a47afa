package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase summarizes the conditions in one word.
type Phase string

const (
	// PhaseReady means that the condition Ready is True.
	PhaseReady Phase = "Ready"
	// PhaseProgressing is the phase of an MLflowOperator whose condition Ready is not True.
	PhaseProgressing Phase = "Progressing"
)

// Severity determines whether a condition affects Ready.
type Severity string

const (
	// SeverityError is the severity of Ready and of a condition that affects Ready.
	SeverityError Severity = ""
	// SeverityInfo is the severity of a condition that does not affect Ready.
	SeverityInfo Severity = "Info"
)

// Condition is an observation of the state of a resource, in the format that the platform operator reads and writes.
type Condition struct {
	// type is the type of the condition. It is unique in the list.
	// +required
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status is the status of the condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// observedGeneration is the generation of the resource on which the condition is based.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastTransitionTime is the last time at which the status changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// reason is the cause of the status in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message describes the cause and how to fix it.
	// +optional
	Message string `json:"message,omitempty"`

	// severity is Info for a condition that does not affect Ready. It is empty for all others.
	// +optional
	Severity Severity `json:"severity,omitempty"`

	// lastHeartbeatTime is the last time at which any field of the condition changed. Older clients read it.
	// +optional
	LastHeartbeatTime *metav1.Time `json:"lastHeartbeatTime,omitempty"`
}

// Release is a release of software that serves a resource.
type Release struct {
	// name is the name of the software. It is unique in the list.
	// +required
	Name string `json:"name"`

	// version is the version of the software.
	// +optional
	Version string `json:"version,omitempty"`

	// repoUrl is the URL of the source repository.
	// +optional
	RepoURL string `json:"repoUrl,omitempty"`
}

// Distribution is the product of which the platform operator is a part.
type Distribution struct {
	// name is the name of the product, for example Open Data Hub. It is the value of the environment variable
	// ODH_MODULE_OPERATOR_PLATFORM_TYPE.
	// +optional
	Name string `json:"name,omitempty"`

	// version is the version of the product, from the ConfigMap that the platform operator writes.
	// +optional
	Version string `json:"version,omitempty"`
}

// Status contains the fields of the status of an MLflowOperator. An AIHub has its own [AIHubStatus].
type Status struct {
	// phase is Ready if the condition Ready is True, and Progressing otherwise.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the resource. This operator sets Ready; other controllers can
	// add further conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// releases lists the software that serves the resource, with the version of the platform first.
	// +optional
	// +listType=map
	// +listMapKey=name
	Releases []Release `json:"releases,omitempty"`

	// distribution is the product that runs this operator. It is not set if the platform operator reports neither a name
	// nor a version.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
}

// GetConditions returns a copy of the conditions.
func (s *Status) GetConditions() []Condition { return copyOf(s.Conditions) }

// SetConditions replaces the conditions with a copy of the given ones.
func (s *Status) SetConditions(conditions []Condition) { s.Conditions = copyOf(conditions) }

func copyOf(conditions []Condition) []Condition {
	out := slices.Clone(conditions)
	for i := range out {
		out[i].LastHeartbeatTime = out[i].LastHeartbeatTime.DeepCopy()
	}
	return out
}
