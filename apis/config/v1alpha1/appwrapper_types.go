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
	// UserRBACAdmissionCheck asks for each component whether the creator of the AppWrapper may create such an object.
	// Default: true.
	// +optional
	UserRBACAdmissionCheck *bool `json:"userRBACAdmissionCheck,omitempty"`

	// SchedulerName goes into pod templates that name no scheduler. Default: empty, nothing is added.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// DefaultQueueName is the local queue of AppWrappers that name none. Default: empty, they stay without a queue.
	// +optional
	DefaultQueueName string `json:"defaultQueueName,omitempty"`

	// SlackQueueName is the ClusterQueue whose lending limits follow the capacity of unhealthy nodes.
	// Default: empty, no queue is touched.
	// +optional
	SlackQueueName string `json:"slackQueueName,omitempty"`

	// Autopilot says which node labels make nodes unfit. An explicit null switches everything about nodes off.
	// +optional
	Autopilot *Autopilot `json:"autopilot,omitempty"`

	// FaultTolerance holds the periods and limits of AppWrappers whose annotations say nothing else.
	// +optional
	FaultTolerance *FaultTolerance `json:"faultTolerance,omitempty"`
}

// Autopilot configures the reaction to unhealthy nodes.
type Autopilot struct {
	// InjectAntiAffinities keeps new pods away from nodes with the labels of resourceTaints. Default: true.
	// +optional
	InjectAntiAffinities *bool `json:"injectAntiAffinities,omitempty"`

	// MonitorNodes resets AppWrappers with pods on nodes that get such a label. Default: true.
	// +optional
	MonitorNodes *bool `json:"monitorNodes,omitempty"`

	// PreferNoScheduleWeight is the weight of preferred terms, 1 to 100. Default: 50; 1 for an explicit null.
	// +optional
	PreferNoScheduleWeight *int32 `json:"preferNoScheduleWeight,omitempty"`

	// ResourceTaints are the labels to react to, by the resource that a pod must request to be concerned. Entries replace
	// the default for their resource. Default: nvidia.com/gpu with autopilot.ibm.com/gpuhealth WARN (PreferNoSchedule),
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
	// AdmissionGracePeriod is how long pods may be missing after the start. Default: 1m.
	// +optional
	AdmissionGracePeriod *Duration `json:"admissionGracePeriod,omitempty"`

	// WarmupGracePeriod is how long pods may take to be ready; not shorter than admissionGracePeriod. Default: 5m.
	// +optional
	WarmupGracePeriod *Duration `json:"warmupGracePeriod,omitempty"`

	// FailureGracePeriod is how long a failed pod is waited for to be replaced. Default: 1m.
	// +optional
	FailureGracePeriod *Duration `json:"failureGracePeriod,omitempty"`

	// ResetPause is the pause before another try. Default: 90s.
	// +optional
	ResetPause *Duration `json:"resetPause,omitempty"`

	// RetryLimit is the number of tries after the first. Default: 3.
	// +optional
	RetryLimit *int32 `json:"retryLimit,omitempty"`

	// DeletionGracePeriod is how long objects may take to go before they are deleted by force. Default: 10m.
	// +optional
	DeletionGracePeriod *Duration `json:"deletionGracePeriod,omitempty"`

	// GracePeriodCeiling bounds every period above. Default: 24h.
	// +optional
	GracePeriodCeiling *Duration `json:"gracePeriodCeiling,omitempty"`

	// SuccessTTLCeiling is how long the objects of a successful AppWrapper are kept; annotations can shorten it.
	// Default: 168h.
	// +optional
	SuccessTTLCeiling *Duration `json:"successTTLCeiling,omitempty"`
}
