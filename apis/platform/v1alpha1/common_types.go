package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase sums up the conditions in one word.
type Phase string

const (
	// PhaseReady goes with the condition Ready being True.
	PhaseReady Phase = "Ready"
	// PhaseProgressing goes with everything else.
	PhaseProgressing Phase = "Progressing"
)

// Severity says how bad a condition is that is not True.
type Severity string

const (
	// SeverityError is the severity of most conditions.
	SeverityError Severity = ""
	// SeverityInfo marks a condition that stands in the way of nothing.
	SeverityInfo Severity = "Info"
)

// Condition is one condition in the shape that the operator of the platform reads and writes.
type Condition struct {
	// type of the condition, unique in the list.
	// +required
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status of the condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// observedGeneration is the generation that the condition is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastTransitionTime is when the status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// reason is one word for the cause.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message names the cause and the fix.
	// +optional
	Message string `json:"message,omitempty"`

	// severity is empty for an error, or Info.
	// +optional
	Severity Severity `json:"severity,omitempty"`

	// lastHeartbeatTime is when anything of the condition changed last. Older readers look for it.
	// +optional
	LastHeartbeatTime *metav1.Time `json:"lastHeartbeatTime,omitempty"`
}

// Release is one piece of software that stands behind a resource.
type Release struct {
	// name of the software, unique in the list.
	// +required
	Name string `json:"name"`

	// version of the software.
	// +optional
	Version string `json:"version,omitempty"`

	// repoUrl is where its source is.
	// +optional
	RepoURL string `json:"repoUrl,omitempty"`
}

// Distribution is the product of which the platform operator is a part.
type Distribution struct {
	// name of the product, as the platform operator gives it in ODH_MODULE_OPERATOR_PLATFORM_TYPE. For example Open Data Hub.
	// +optional
	Name string `json:"name,omitempty"`

	// version of the product, as the platform operator gives it in its ConfigMap.
	// +optional
	Version string `json:"version,omitempty"`
}

// Status is what every resource of this group reports.
type Status struct {
	// phase is Ready or Progressing.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the resource. Ready is ours; others may add theirs.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// releases lists what runs, the platform first.
	// +optional
	// +listType=map
	// +listMapKey=name
	Releases []Release `json:"releases,omitempty"`

	// distribution is the product that runs this operator. It is missing if the platform operator says nothing about it.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
}

// GetConditions returns a copy of the conditions.
func (s *Status) GetConditions() []Condition { return copyOf(s.Conditions) }

// SetConditions replaces the conditions by a copy of the given ones.
func (s *Status) SetConditions(conditions []Condition) { s.Conditions = copyOf(conditions) }

func copyOf(conditions []Condition) []Condition {
	out := slices.Clone(conditions)
	for i := range out {
		out[i].LastHeartbeatTime = out[i].LastHeartbeatTime.DeepCopy()
	}
	return out
}
