package config

import (
	"errors"
	"fmt"
	"time"
)

// AppWrapper holds the settings of the component appwrapper; see apis/config/v1alpha1 for what they mean.
type AppWrapper struct {
	UserRBACAdmissionCheck                          bool
	SchedulerName, DefaultQueueName, SlackQueueName string
	// Autopilot is nil when nothing is to be done about nodes.
	Autopilot      *Autopilot
	FaultTolerance FaultTolerance
}

// Autopilot says which node labels make nodes unfit.
type Autopilot struct {
	InjectAntiAffinities, MonitorNodes bool
	PreferNoScheduleWeight             int32
	// ResourceTaints by the resource that a pod must request to be concerned.
	ResourceTaints map[string][]NodeTaint
}

// NodeTaint is a node label that is treated like a taint of that effect.
type NodeTaint struct {
	Key, Value, Effect string
}

// FaultTolerance holds the periods and limits of AppWrappers whose annotations say nothing else.
type FaultTolerance struct {
	AdmissionGracePeriod, WarmupGracePeriod, FailureGracePeriod, ResetPause, DeletionGracePeriod time.Duration
	GracePeriodCeiling, SuccessTTLCeiling                                                        time.Duration
	RetryLimit                                                                                   int32
}

const (
	gpuHealth     = "autopilot.ibm.com/gpuhealth"
	defaultWeight = 50
	nullWeight    = 1 // what the original uses for an explicit null
)

// DefaultAppWrapper returns the settings that hold when nobody says anything.
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
// An error names the key, its value, the cure, and where it stands. Whether the values fit together is for the component
// to say.
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
	if err := readAppWrapper(c.sections[appWrapperKey], &settings); err != nil {
		return AppWrapper{}, nil, err
	}
	return settings, notes, nil
}

// readAppWrapper reads the section of the configuration file, which may be absent, over the settings.
func readAppWrapper(tree map[string]any, settings *AppWrapper) error {
	s := &section{tree: tree, path: appWrapperKey}
	s.appWrapper(settings)
	return errors.Join(s.errs...)
}
