package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// appWrapperKey is what the keys of the component start with.
const appWrapperKey = "appwrapper."

// AppWrapper holds the settings of the component appwrapper; see appWrapperSettings for what they mean.
type AppWrapper struct {
	UserRBACAdmissionCheck bool
	SchedulerName          string
	DefaultQueueName       string
	SlackQueueName         string
	// Autopilot is nil when nothing is to be done about nodes.
	Autopilot      *Autopilot
	FaultTolerance FaultTolerance
}

// Autopilot lists the node labels that make nodes unfit.
type Autopilot struct {
	InjectAntiAffinities   bool
	MonitorNodes           bool
	PreferNoScheduleWeight int32
	// ResourceTaints by the resource that a pod must request to be concerned.
	ResourceTaints map[string][]NodeTaint
}

// NodeTaint is a node label that is treated like a taint of that effect.
type NodeTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// FaultTolerance holds the periods and limits of AppWrappers that have no annotations for them.
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

// DefaultAppWrapper returns the settings that hold without any configuration.
func DefaultAppWrapper() AppWrapper {
	settings, _, _ := Config{}.AppWrapper() // a default is never refused
	return settings
}

// AppWrapper returns the settings of the component appwrapper: the defaults, over them those of the originals'
// ConfigMaps in the given order, over them the section of the configuration file. Notes name keys that have no effect.
// An error names the key, its value, the fix, and the document. Whether the values fit together is checked by the component.
func (c Config) AppWrapper(older ...LegacyConfig) (AppWrapper, []string, error) {
	var settings AppWrapper
	notes, err := c.layered(appWrapperSettings(&settings), older)
	return settings, notes, err
}

func appWrapperSettings(w *AppWrapper) []setting {
	a, f := &Autopilot{}, &w.FaultTolerance
	return []setting{
		{key: "appwrapper.userRBACAdmissionCheck", fallback: "true", shape: aSwitch, set: boolean(&w.UserRBACAdmissionCheck),
			help: "check for each component whether the creator of the AppWrapper may create such an object"},
		{key: "appwrapper.schedulerName", set: text(&w.SchedulerName), help: "scheduler of pod templates that name none; if empty, none is set"},
		{key: "appwrapper.defaultQueueName", set: text(&w.DefaultQueueName), help: "LocalQueue of AppWrappers that name none; if empty, they have no queue"},
		{key: "appwrapper.slackQueueName", set: text(&w.SlackQueueName),
			help: "ClusterQueue whose lending limits are adjusted to the capacity of unhealthy nodes; if empty, no queue is changed"},
		{key: "appwrapper.autopilot", null: "null", shape: anObject, set: func(raw string) error {
			if w.Autopilot = a; raw == "null" {
				w.Autopilot = nil
			}
			return nil
		}, help: "node labels that mark unhealthy nodes; an explicit null disables all reactions to nodes"},
		{key: "appwrapper.autopilot.injectAntiAffinities", fallback: "true", shape: aSwitch, set: boolean(&a.InjectAntiAffinities),
			help: "keep new pods away from nodes with the labels in resourceTaints"},
		{key: "appwrapper.autopilot.monitorNodes", fallback: "true", shape: aSwitch, set: boolean(&a.MonitorNodes),
			help: "reset AppWrappers with pods on nodes that get such a label later"},
		{key: "appwrapper.autopilot.preferNoScheduleWeight", fallback: "50", null: "1", shape: aNumber, set: number(&a.PreferNoScheduleWeight),
			help: "weight of the preferred node affinity terms, 1 to 100; 1 for an explicit null"},
		{key: "appwrapper.autopilot.resourceTaints", fallback: gpuTaints, shape: anObject, items: []string{"effect", "key", "value"},
			set:  a.setTaints,
			help: "node labels to react to, by the resource that a pod requests; entries replace the default for their resource"},
		{key: "appwrapper.faultTolerance.admissionGracePeriod", fallback: "1m", shape: aPeriod, set: period(&f.AdmissionGracePeriod),
			help: "how long pods may take to appear after the start, if the AppWrapper has no annotation for it"},
		{key: "appwrapper.faultTolerance.warmupGracePeriod", fallback: "5m", shape: aPeriod, set: period(&f.WarmupGracePeriod),
			help: "how long pods may take to become ready; at least admissionGracePeriod"},
		{key: "appwrapper.faultTolerance.failureGracePeriod", fallback: "1m", shape: aPeriod, set: period(&f.FailureGracePeriod),
			help: "how long a failed pod may take to be replaced"},
		{key: "appwrapper.faultTolerance.resetPause", fallback: "90s", shape: aPeriod, set: period(&f.ResetPause), help: "pause before a retry"},
		{key: "appwrapper.faultTolerance.retryLimit", fallback: "3", shape: aNumber, set: number(&f.RetryLimit), help: "number of retries"},
		{key: "appwrapper.faultTolerance.deletionGracePeriod", fallback: "10m", shape: aPeriod, set: period(&f.DeletionGracePeriod),
			help: "how long objects may take to be deleted before they are force-deleted"},
		{key: "appwrapper.faultTolerance.gracePeriodCeiling", fallback: "24h", shape: aPeriod, set: period(&f.GracePeriodCeiling),
			help: "maximum of every period above, also of one in an annotation"},
		{key: "appwrapper.faultTolerance.successTTLCeiling", fallback: "168h", shape: aPeriod, set: period(&f.SuccessTTLCeiling),
			help: "how long the objects of a successful AppWrapper are kept; annotations can shorten this time"},
	}
}

// gpuTaints are the labels that Autopilot puts on nodes.
const gpuTaints = `{"nvidia.com/gpu": [{"key": "autopilot.ibm.com/gpuhealth", "value": "WARN", "effect": "PreferNoSchedule"}, ` +
	`{"key": "autopilot.ibm.com/gpuhealth", "value": "TESTING", "effect": "NoSchedule"}, ` +
	`{"key": "autopilot.ibm.com/gpuhealth", "value": "EVICT", "effect": "NoExecute"}]}`

// setTaints reads taints over those that are there, resource by resource.
func (a *Autopilot) setTaints(raw string) error {
	given := map[string][]NodeTaint{}
	if err := json.Unmarshal([]byte(raw), &given); err != nil {
		return errors.New("must be a list of key, value and effect for each resource")
	}
	if a.ResourceTaints == nil {
		a.ResourceTaints = map[string][]NodeTaint{}
	}
	maps.DeleteFunc(given, func(_ string, taints []NodeTaint) bool { return taints == nil }) // as good as absent
	maps.Copy(a.ResourceTaints, given)
	for _, resource := range sortedKeys(a.ResourceTaints) {
		for i, taint := range a.ResourceTaints[resource] {
			if !slices.Contains([]string{"NoExecute", "NoSchedule", "PreferNoSchedule"}, taint.Effect) {
				return fmt.Errorf("%s[%d].effect %q: must be NoExecute, NoSchedule or PreferNoSchedule", resource, i, taint.Effect)
			}
		}
	}
	return nil
}

func period(dst *time.Duration) func(string) error {
	return parsed(dst, time.ParseDuration, `must be a duration such as "5m", or a whole number of nanoseconds`)
}
