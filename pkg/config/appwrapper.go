package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// appWrapperKey is the section of the component in every document.
const appWrapperKey = "appwrapper"

// AppWrapper holds the settings of the component appwrapper; see apis/config/v1alpha1 for what they mean.
type AppWrapper struct {
	UserRBACAdmissionCheck bool   `json:"userRBACAdmissionCheck"`
	SchedulerName          string `json:"schedulerName"`
	DefaultQueueName       string `json:"defaultQueueName"`
	SlackQueueName         string `json:"slackQueueName"`
	// Autopilot is nil when nothing is to be done about nodes.
	Autopilot      *Autopilot     `json:"autopilot"`
	FaultTolerance FaultTolerance `json:"faultTolerance"`
}

// Autopilot lists the node labels that make nodes unfit.
type Autopilot struct {
	InjectAntiAffinities   bool  `json:"injectAntiAffinities"`
	MonitorNodes           bool  `json:"monitorNodes"`
	PreferNoScheduleWeight int32 `json:"preferNoScheduleWeight"`
	// ResourceTaints by the resource that a pod must request to be concerned.
	ResourceTaints map[string][]NodeTaint `json:"resourceTaints"`
}

// NodeTaint is a node label that is treated like a taint of that effect.
type NodeTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// FaultTolerance holds the periods and limits of AppWrappers that have no annotations for them.
type FaultTolerance struct {
	AdmissionGracePeriod time.Duration `json:"admissionGracePeriod"`
	WarmupGracePeriod    time.Duration `json:"warmupGracePeriod"`
	FailureGracePeriod   time.Duration `json:"failureGracePeriod"`
	ResetPause           time.Duration `json:"resetPause"`
	DeletionGracePeriod  time.Duration `json:"deletionGracePeriod"`
	GracePeriodCeiling   time.Duration `json:"gracePeriodCeiling"`
	SuccessTTLCeiling    time.Duration `json:"successTTLCeiling"`
	RetryLimit           int32         `json:"retryLimit"`
}

const (
	gpuHealth     = "autopilot.ibm.com/gpuhealth"
	defaultWeight = 50
	nullWeight    = 1 // what the original uses for an explicit null
)

// DefaultAppWrapper returns the settings that hold without any configuration.
func DefaultAppWrapper() AppWrapper {
	return AppWrapper{
		UserRBACAdmissionCheck: true,
		Autopilot: &Autopilot{
			InjectAntiAffinities: true, MonitorNodes: true, PreferNoScheduleWeight: defaultWeight,
			ResourceTaints: map[string][]NodeTaint{"nvidia.com/gpu": {
				{Key: gpuHealth, Value: "WARN", Effect: "PreferNoSchedule"},
				{Key: gpuHealth, Value: "TESTING", Effect: "NoSchedule"},
				{Key: gpuHealth, Value: "EVICT", Effect: "NoExecute"},
			}},
		},
		FaultTolerance: FaultTolerance{
			AdmissionGracePeriod: time.Minute, WarmupGracePeriod: 5 * time.Minute, FailureGracePeriod: time.Minute,
			ResetPause: 90 * time.Second, DeletionGracePeriod: 10 * time.Minute,
			GracePeriodCeiling: 24 * time.Hour, SuccessTTLCeiling: 7 * 24 * time.Hour, RetryLimit: 3,
		},
	}
}

// AppWrapper returns the settings of the component appwrapper: the defaults, over them those of the originals'
// ConfigMaps in the given order, over them the section of the configuration file. Notes name keys that have no effect.
// An error names the key, its value, the fix, and the document. Whether the values fit together is checked by the component.
func (c Config) AppWrapper(older ...OlderConfig) (AppWrapper, []string, error) {
	settings := DefaultAppWrapper()
	var notes []string
	for _, o := range older {
		more, err := o.apply(&settings)
		if err != nil {
			return AppWrapper{}, nil, fmt.Errorf("%s: %w", o.Source, err)
		}
		notes = append(notes, more...)
	}
	tree, err := c.section(appWrapperKey)
	if err == nil {
		err = settings.read(tree, appWrapperKey)
	}
	return settings, notes, err
}

// read reads a section over the settings. Absent keys leave what is there.
func (w *AppWrapper) read(tree map[string]any, path string) error {
	autopilot, given := tree["autopilot"]
	switch {
	case given && autopilot == nil:
		w.Autopilot = nil
	case given && w.Autopilot == nil: // an earlier document switched it off
		w.Autopilot = DefaultAppWrapper().Autopilot
	}
	fields, _ := autopilot.(map[string]any)
	if weight, given := fields["preferNoScheduleWeight"]; given && weight == nil {
		w.Autopilot.PreferNoScheduleWeight = nullWeight
	}
	fields, _ = tree["faultTolerance"].(map[string]any)
	if err := parsePeriods(fields, path+".faultTolerance"); err != nil {
		return err
	}
	if err := decode(tree, path, w); err != nil {
		return err
	}
	return w.Autopilot.check(path + ".autopilot")
}

// parsePeriods replaces durations such as "5m" by nanoseconds, which the originals wrote.
func parsePeriods(fields map[string]any, path string) error {
	for _, key := range sortedKeys(fields) {
		text, isText := fields[key].(string)
		if !isText || key == "retryLimit" {
			continue
		}
		period, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf(`%s.%s %q: must be a duration such as "5m", or a whole number of nanoseconds`, path, key, text)
		}
		fields[key] = int64(period)
	}
	return nil
}

func (a *Autopilot) check(path string) error {
	if a == nil {
		return nil
	}
	for _, resource := range sortedKeys(a.ResourceTaints) {
		for i, taint := range a.ResourceTaints[resource] {
			if !slices.Contains([]string{"NoExecute", "NoSchedule", "PreferNoSchedule"}, taint.Effect) {
				return fmt.Errorf("%s.resourceTaints.%s[%d].effect %q: must be NoExecute, NoSchedule or PreferNoSchedule", path, resource, i, taint.Effect)
			}
		}
	}
	return nil
}
