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

// AppWrapper holds the settings of the component appwrapper; see appWrapperSettings for their meaning.
type AppWrapper struct {
	UserRBACAdmissionCheck bool
	SchedulerName          string
	DefaultQueueName       string
	SlackQueueName         string
	// Autopilot is nil if nodes are not monitored.
	Autopilot      *Autopilot
	FaultTolerance FaultTolerance
}

// Autopilot configures the labels of unhealthy nodes.
type Autopilot struct {
	InjectAntiAffinities   bool
	MonitorNodes           bool
	PreferNoScheduleWeight int32
	// ResourceTaints are the labels by the resource that a pod must request to be affected.
	ResourceTaints map[string][]NodeTaint
}

// NodeTaint is a node label that is treated like a taint with the effect.
type NodeTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// FaultTolerance holds the default durations and limits of AppWrappers without annotations for them.
type FaultTolerance struct {
	AdmissionGracePeriod time.Duration
	WarmupGracePeriod    time.Duration
	FailureGracePeriod   time.Duration
	ResetPause           time.Duration
	DeletionGracePeriod  time.Duration
	GracePeriodCeiling   time.Duration
	SuccessTTLCeiling    time.Duration
	RetryLimit           int32
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

func appWrapperSettings(w *AppWrapper) []setting {
	a, f := &Autopilot{}, &w.FaultTolerance
	return []setting{
		{key: "appwrapper.userRBACAdmissionCheck", defaultValue: "true", valueType: typeBool, set: boolean(&w.UserRBACAdmissionCheck),
			help: "check for each component whether the creator of the AppWrapper may create such an object"},
		{key: "appwrapper.schedulerName", set: text(&w.SchedulerName), help: "scheduler of pod templates that name none; if empty, none is set"},
		{key: "appwrapper.defaultQueueName", set: text(&w.DefaultQueueName), help: "LocalQueue of AppWrappers that name none; if empty, they have no queue"},
		{key: "appwrapper.slackQueueName", set: text(&w.SlackQueueName),
			help: "ClusterQueue whose lending limits are adjusted to the capacity of unhealthy nodes; if empty, no queue is changed"},
		{key: "appwrapper.autopilot", nullValue: "null", valueType: typeObject, set: func(raw string) error {
			if w.Autopilot = a; raw == "null" {
				w.Autopilot = nil
			}
			return nil
		}, help: "node labels that mark unhealthy nodes; an explicit null disables all reactions to nodes"},
		{key: "appwrapper.autopilot.injectAntiAffinities", defaultValue: "true", valueType: typeBool, set: boolean(&a.InjectAntiAffinities),
			help: "keep new pods away from nodes with the labels in resourceTaints"},
		{key: "appwrapper.autopilot.monitorNodes", defaultValue: "true", valueType: typeBool, set: boolean(&a.MonitorNodes),
			help: "reset AppWrappers with pods on nodes that get such a label later"},
		{key: "appwrapper.autopilot.preferNoScheduleWeight", defaultValue: "50", nullValue: "1", valueType: typeInt, set: number(&a.PreferNoScheduleWeight),
			help: "weight of the preferred node affinity terms, 1 to 100; 1 for an explicit null"},
		{key: "appwrapper.autopilot.resourceTaints", defaultValue: gpuTaints, valueType: typeObject, itemKeys: []string{"effect", "key", "value"},
			set:  a.setTaints,
			help: "node labels to react to, by the resource that a pod requests; entries replace the default for their resource"},
		{key: "appwrapper.faultTolerance.admissionGracePeriod", defaultValue: "1m", valueType: typeDuration, set: legacyDuration(&f.AdmissionGracePeriod),
			help: "how long pods may take to appear after the start, if the AppWrapper has no annotation for it"},
		{key: "appwrapper.faultTolerance.warmupGracePeriod", defaultValue: "5m", valueType: typeDuration, set: legacyDuration(&f.WarmupGracePeriod),
			help: "how long pods may take to become ready; at least admissionGracePeriod"},
		{key: "appwrapper.faultTolerance.failureGracePeriod", defaultValue: "1m", valueType: typeDuration, set: legacyDuration(&f.FailureGracePeriod),
			help: "how long a failed pod may take to be replaced"},
		{key: "appwrapper.faultTolerance.resetPause", defaultValue: "90s", valueType: typeDuration, set: legacyDuration(&f.ResetPause), help: "pause before a retry"},
		{key: "appwrapper.faultTolerance.retryLimit", defaultValue: "3", valueType: typeInt, set: number(&f.RetryLimit), help: "number of retries"},
		{key: "appwrapper.faultTolerance.deletionGracePeriod", defaultValue: "10m", valueType: typeDuration, set: legacyDuration(&f.DeletionGracePeriod),
			help: "how long objects may take to be deleted before they are force-deleted"},
		{key: "appwrapper.faultTolerance.gracePeriodCeiling", defaultValue: "24h", valueType: typeDuration, set: legacyDuration(&f.GracePeriodCeiling),
			help: "maximum of every period above, including one in an annotation"},
		{key: "appwrapper.faultTolerance.successTTLCeiling", defaultValue: "168h", valueType: typeDuration, set: legacyDuration(&f.SuccessTTLCeiling),
			help: "how long the objects of a successful AppWrapper are kept; annotations can shorten this time"},
	}
}

// gpuTaints are the node labels of Autopilot.
const gpuTaints = `{"nvidia.com/gpu": [{"key": "autopilot.ibm.com/gpuhealth", "value": "WARN", "effect": "PreferNoSchedule"}, ` +
	`{"key": "autopilot.ibm.com/gpuhealth", "value": "TESTING", "effect": "NoSchedule"}, ` +
	`{"key": "autopilot.ibm.com/gpuhealth", "value": "EVICT", "effect": "NoExecute"}]}`

// setTaints parses taints, which replace the existing ones of the same resources.
func (a *Autopilot) setTaints(raw string) error {
	parsed := map[string][]NodeTaint{}
	if err := json.Unmarshal([]byte(raw), &parsed); err != nil {
		return errors.New("must be a list of key, value and effect for each resource")
	}
	if a.ResourceTaints == nil {
		a.ResourceTaints = map[string][]NodeTaint{}
	}
	maps.DeleteFunc(parsed, func(_ string, taints []NodeTaint) bool { return taints == nil }) // null counts as unset
	maps.Copy(a.ResourceTaints, parsed)
	for _, resource := range sortedKeys(a.ResourceTaints) {
		for i, taint := range a.ResourceTaints[resource] {
			if !slices.Contains([]string{"NoExecute", "NoSchedule", "PreferNoSchedule"}, taint.Effect) {
				return fmt.Errorf("%s[%d].effect %q: must be NoExecute, NoSchedule or PreferNoSchedule", resource, i, taint.Effect)
			}
		}
	}
	return nil
}

func legacyDuration(dst *time.Duration) func(string) error {
	return parsed(dst, time.ParseDuration, `must be a duration such as "5m", or a whole number of nanoseconds`)
}
