package v1alpha1

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a Go duration such as "5m", or a whole number of nanoseconds, as older configurations have it.
type Duration struct {
	metav1.Duration `json:",inline"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return d.Duration.UnmarshalJSON(raw)
	}
	var nanoseconds int64
	if err := json.Unmarshal(raw, &nanoseconds); err != nil {
		return err
	}
	d.Duration.Duration = time.Duration(nanoseconds)
	return nil
}

// AppWrapper holds the settings of the component appwrapper. What it names wins over the ConfigMaps
// codeflare-operator-config and appwrapper-operator-config in the manager's namespace, which are read once when the
// component starts.
type AppWrapper struct {
	// UserRBACAdmissionCheck checks for each component whether the creator of the AppWrapper may create such an object.
	// Default: true.
	// +optional
	UserRBACAdmissionCheck *bool `json:"userRBACAdmissionCheck,omitempty"`

	// SchedulerName is set in pod templates that name no scheduler. Default: empty, nothing is set.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// DefaultQueueName is the LocalQueue of AppWrappers that name none. Default: empty, they have no queue.
	// +optional
	DefaultQueueName string `json:"defaultQueueName,omitempty"`

	// SlackQueueName is the ClusterQueue whose lending limits are adjusted to the capacity of unhealthy nodes.
	// Default: empty, no queue is changed.
	// +optional
	SlackQueueName string `json:"slackQueueName,omitempty"`

	// Autopilot defines which node labels mark unhealthy nodes. An explicit null disables all reactions to nodes.
	// +optional
	Autopilot *Autopilot `json:"autopilot,omitempty"`

	// FaultTolerance contains the periods and limits of AppWrappers whose annotations do not override them.
	// +optional
	FaultTolerance *FaultTolerance `json:"faultTolerance,omitempty"`
}

// Autopilot configures the reaction to unhealthy nodes.
type Autopilot struct {
	// InjectAntiAffinities keeps new pods away from nodes with the labels in resourceTaints. Default: true.
	// +optional
	InjectAntiAffinities *bool `json:"injectAntiAffinities,omitempty"`

	// MonitorNodes resets AppWrappers with pods on nodes that get such a label later. Default: true.
	// +optional
	MonitorNodes *bool `json:"monitorNodes,omitempty"`

	// PreferNoScheduleWeight is the weight of the preferred node affinity terms, 1 to 100. Default: 50; 1 for an explicit null.
	// +optional
	PreferNoScheduleWeight *int32 `json:"preferNoScheduleWeight,omitempty"`

	// ResourceTaints are the node labels to react to, by the resource that a pod requests. Entries replace the default for
	// their resource. Default: nvidia.com/gpu with autopilot.ibm.com/gpuhealth WARN (PreferNoSchedule),
	// TESTING (NoSchedule) and EVICT (NoExecute).
	// +optional
	ResourceTaints map[string][]NodeTaint `json:"resourceTaints,omitempty"`
}

// NodeTaint is a node label that is treated like a taint.
type NodeTaint struct {
	// Key of the label.
	Key string `json:"key"`

	// Value of the label.
	// +optional
	Value string `json:"value,omitempty"`

	// Effect is NoExecute, NoSchedule or PreferNoSchedule.
	Effect string `json:"effect"`
}

// FaultTolerance holds periods and limits. A period of an AppWrapper's annotation is bounded by gracePeriodCeiling.
type FaultTolerance struct {
	// AdmissionGracePeriod is how long pods may take to appear after the start. Default: 1m.
	// +optional
	AdmissionGracePeriod *Duration `json:"admissionGracePeriod,omitempty"`

	// WarmupGracePeriod is how long pods may take to become ready; at least admissionGracePeriod. Default: 5m.
	// +optional
	WarmupGracePeriod *Duration `json:"warmupGracePeriod,omitempty"`

	// FailureGracePeriod is how long a failed pod may take to be replaced. Default: 1m.
	// +optional
	FailureGracePeriod *Duration `json:"failureGracePeriod,omitempty"`

	// ResetPause is the pause before a retry. Default: 90s.
	// +optional
	ResetPause *Duration `json:"resetPause,omitempty"`

	// RetryLimit is the number of retries. Default: 3.
	// +optional
	RetryLimit *int32 `json:"retryLimit,omitempty"`

	// DeletionGracePeriod is how long objects may take to be deleted before they are force-deleted. Default: 10m.
	// +optional
	DeletionGracePeriod *Duration `json:"deletionGracePeriod,omitempty"`

	// GracePeriodCeiling is the maximum of every period above. Default: 24h.
	// +optional
	GracePeriodCeiling *Duration `json:"gracePeriodCeiling,omitempty"`

	// SuccessTTLCeiling is how long the objects of a successful AppWrapper are kept; annotations can shorten this time.
	// Default: 168h.
	// +optional
	SuccessTTLCeiling *Duration `json:"successTTLCeiling,omitempty"`
}
