package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// appWrapperKey is the prefix of the keys of the component.
const appWrapperKey = "appwrapper."

// AppWrapper holds the settings of the component appwrapper; see their tags for their meaning.
type AppWrapper struct {
	UserRBACAdmissionCheck bool   `key:"appwrapper.userRBACAdmissionCheck" default:"true" help:"check whether the creator of an AppWrapper may create each object in spec.components"`
	SchedulerName          string `key:"appwrapper.schedulerName" help:"scheduler of pod templates that name none; if empty, none is set"`
	DefaultQueueName       string `key:"appwrapper.defaultQueueName" help:"LocalQueue of AppWrappers that name none; if empty, they have no queue"`
	SlackQueueName         string `key:"appwrapper.slackQueueName" help:"ClusterQueue whose lending limits are adjusted to the capacity of unhealthy nodes; if empty, no queue is changed"`
	// Autopilot is nil if the labels of nodes have no effect.
	Autopilot      *Autopilot
	FaultTolerance FaultTolerance `section:""`
}

// Autopilot configures the reactions to labels of unhealthy nodes.
type Autopilot struct {
	InjectAntiAffinities   bool  `key:"appwrapper.autopilot.injectAntiAffinities" default:"true" help:"keep new pods away from nodes with the labels in resourceTaints"`
	MonitorNodes           bool  `key:"appwrapper.autopilot.monitorNodes" default:"true" help:"reset AppWrappers with pods on nodes that get such a label later"`
	PreferNoScheduleWeight int32 `key:"appwrapper.autopilot.preferNoScheduleWeight" default:"50" null:"1" help:"weight of the preferred node affinity terms, 1 to 100; 1 for an explicit null"`
	// ResourceTaints maps a resource to the node labels that affect the pods that request it.
	ResourceTaints map[string][]NodeTaint `key:"appwrapper.autopilot.resourceTaints" default:"{\"nvidia.com/gpu\": [{\"key\": \"autopilot.ibm.com/gpuhealth\", \"value\": \"WARN\", \"effect\": \"PreferNoSchedule\"}, {\"key\": \"autopilot.ibm.com/gpuhealth\", \"value\": \"TESTING\", \"effect\": \"NoSchedule\"}, {\"key\": \"autopilot.ibm.com/gpuhealth\", \"value\": \"EVICT\", \"effect\": \"NoExecute\"}]}" items:"effect key value" help:"node labels to react to, by the resource that a pod requests; entries replace the default for their resource"`
}

// NodeTaint is a node label that is treated like a taint with the effect.
type NodeTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// FaultTolerance holds the defaults of periods and retries that AppWrappers can set in annotations, and the maximum of such periods.
type FaultTolerance struct {
	AdmissionGracePeriod time.Duration `key:"appwrapper.faultTolerance.admissionGracePeriod" default:"1m" parse:"nanoseconds" help:"how long pods may take to appear after the start, if the AppWrapper has no annotation for it"`
	WarmupGracePeriod    time.Duration `key:"appwrapper.faultTolerance.warmupGracePeriod" default:"5m" parse:"nanoseconds" help:"how long pods may take to become ready; at least admissionGracePeriod"`
	FailureGracePeriod   time.Duration `key:"appwrapper.faultTolerance.failureGracePeriod" default:"1m" parse:"nanoseconds" help:"how long a failed pod may take to be replaced"`
	ResetPause           time.Duration `key:"appwrapper.faultTolerance.resetPause" default:"90s" parse:"nanoseconds" help:"pause before a retry"`
	RetryLimit           int32         `key:"appwrapper.faultTolerance.retryLimit" default:"3" help:"number of retries"`
	DeletionGracePeriod  time.Duration `key:"appwrapper.faultTolerance.deletionGracePeriod" default:"10m" parse:"nanoseconds" help:"how long objects may take to be deleted before they are force-deleted"`
	GracePeriodCeiling   time.Duration `key:"appwrapper.faultTolerance.gracePeriodCeiling" default:"24h" parse:"nanoseconds" help:"maximum of every period above, including one in an annotation"`
	SuccessTTLCeiling    time.Duration `key:"appwrapper.faultTolerance.successTTLCeiling" default:"168h" parse:"nanoseconds" help:"how long the objects of a successful AppWrapper are kept; annotations can shorten this time"`
}

// DefaultAppWrapper returns the settings without any configuration.
func DefaultAppWrapper() AppWrapper {
	settings, _, _ := Config{}.AppWrapper() // defaults are valid
	return settings
}

// AppWrapper returns the settings of the component appwrapper from the defaults, the legacy ConfigMaps in the given order and the configuration
// file, in ascending precedence. It also returns warnings about keys without effect. The component validates combinations of settings.
func (c Config) AppWrapper(legacyConfigs ...LegacyConfig) (AppWrapper, []string, error) {
	var settings AppWrapper
	warnings, err := c.mergeLayers(appWrapperSettings(&settings), legacyConfigs)
	return settings, warnings, err
}

// appWrapperSettings returns the settings of the component. The setting that disables Autopilot precedes the settings of Autopilot.
func appWrapperSettings(w *AppWrapper) []setting {
	autopilot, all := &Autopilot{}, fieldSettings(w)
	autopilotSetting := setting{key: "appwrapper.autopilot", nullValue: "null", valueType: typeObject, set: func(raw string) error {
		if w.Autopilot = autopilot; raw == "null" {
			w.Autopilot = nil
		}
		return nil
	}, help: "node labels that mark unhealthy nodes; an explicit null disables all reactions to nodes"}
	return slices.Insert(all, indexOf(all, "appwrapper.faultTolerance.admissionGracePeriod"), append([]setting{autopilotSetting}, fieldSettings(autopilot)...)...)
}

// taints parses the taints of resources. They replace the existing taints of the same resources.
func taints(dst *map[string][]NodeTaint) func(string) error {
	return func(raw string) error {
		parsed := map[string][]NodeTaint{}
		if err := json.Unmarshal([]byte(raw), &parsed); err != nil {
			return errors.New("must be a list of key, value and effect for each resource")
		}
		if *dst == nil {
			*dst = map[string][]NodeTaint{}
		}
		maps.DeleteFunc(parsed, func(_ string, taints []NodeTaint) bool { return taints == nil }) // null counts as unset
		maps.Copy(*dst, parsed)
		for _, resource := range sortedKeys(*dst) {
			for i, taint := range (*dst)[resource] {
				if !slices.Contains([]string{"NoExecute", "NoSchedule", "PreferNoSchedule"}, taint.Effect) {
					return fmt.Errorf("%s[%d].effect %q: must be NoExecute, NoSchedule or PreferNoSchedule", resource, i, taint.Effect)
				}
			}
		}
		return nil
	}
}

func durationOrNanoseconds(dst *time.Duration) func(string) error {
	return parsed(dst, time.ParseDuration, `must be a duration such as "5m", or a whole number of nanoseconds`)
}
