package appwrapper

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// Settings are what the manager's configuration says about AppWrappers.
type Settings struct {
	// SchedulerName is given to pod templates that name no scheduler; empty gives none.
	SchedulerName string
	// Autopilot is how the health of nodes is told; nil switches both uses of it off.
	Autopilot *Autopilot
	// FaultTolerance are the defaults and bounds of the annotations.
	FaultTolerance FaultTolerance
	// ReviewAccess lets an AppWrapper start only if a webhook has seen who created it.
	ReviewAccess bool
	// Authors says what no component may use.
	Authors admission.Rules
	// SlackQueueName is the ClusterQueue whose lending limits follow what nodes cannot offer; empty for none.
	SlackQueueName string
	// Clock tells the time.
	Clock clock.WithTicker
}

// Autopilot says which labels of a node tell that one of its resources is unwell. The labels are written as taints, because
// the effect says what to do about them; they are no taints of the node.
type Autopilot struct {
	// InjectAntiAffinities keeps new pods that ask for a resource away from nodes where it is unwell.
	InjectAntiAffinities bool
	// MonitorNodes moves running workloads away from such nodes.
	MonitorNodes bool
	// PreferNoScheduleWeight is the weight of a preferred term, 1 to 100.
	PreferNoScheduleWeight int32
	// ResourceTaints has, for each resource, the labels that tell about it.
	ResourceTaints map[corev1.ResourceName][]corev1.Taint
}

// FaultTolerance holds the defaults of annotations, and the bounds that they are held to.
type FaultTolerance struct {
	// AdmissionGrace is how long components and pods may take to appear.
	AdmissionGrace time.Duration
	// WarmupGrace is how long pods that exist may take to run.
	WarmupGrace time.Duration
	// FailureGrace is how long the controller of a failed pod may take to replace it.
	FailureGrace time.Duration
	// RetryPause is the pause between clearing away and trying again.
	RetryPause time.Duration
	// RetryLimit is how often a failed workload is tried again.
	RetryLimit int32
	// DeletionGrace is how long deletion may take before it is forced.
	DeletionGrace time.Duration
	// GraceCeiling bounds every period above.
	GraceCeiling time.Duration
	// SuccessTTL is for how long the objects of a successful workload are kept, at most.
	SuccessTTL time.Duration
}

// defaultWeight is the weight of preferred terms; an explicit null in the configuration means nullWeight.
const (
	defaultWeight = 50
	nullWeight    = 1
)

// WeightOf is the weight that a configured weight stands for, where null is not the same as absent.
func WeightOf(configured *int32) int32 {
	if configured == nil {
		return nullWeight
	}
	return *configured
}

// DefaultSettings returns what holds where the configuration is silent.
func DefaultSettings() Settings {
	return Settings{
		Autopilot: &Autopilot{
			InjectAntiAffinities:   true,
			MonitorNodes:           true,
			PreferNoScheduleWeight: defaultWeight,
			ResourceTaints: map[corev1.ResourceName][]corev1.Taint{
				"nvidia.com/gpu": {
					{Key: awv1beta2.LabelAutopilot, Value: "WARN", Effect: corev1.TaintEffectPreferNoSchedule},
					{Key: awv1beta2.LabelAutopilot, Value: "TESTING", Effect: corev1.TaintEffectNoSchedule},
					{Key: awv1beta2.LabelAutopilot, Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
				},
			},
		},
		FaultTolerance: FaultTolerance{
			AdmissionGrace: time.Minute,
			WarmupGrace:    5 * time.Minute,
			FailureGrace:   time.Minute,
			RetryPause:     90 * time.Second,
			RetryLimit:     3,
			DeletionGrace:  10 * time.Minute,
			GraceCeiling:   24 * time.Hour,
			SuccessTTL:     7 * 24 * time.Hour,
		},
		ReviewAccess: true,
		Clock:        clock.RealClock{},
	}
}

// Validate returns an error for each setting that contradicts another one. The keys are those of the configuration, below
// faultTolerance, whose values are nanoseconds.
func (f FaultTolerance) Validate() error {
	var errs []error
	for _, period := range []struct {
		key   string
		value time.Duration
	}{
		{"deletionGracePeriod", f.DeletionGrace},
		{"resetPause", f.RetryPause},
		{"failureGracePeriod", f.FailureGrace},
		{"admissionGracePeriod", f.AdmissionGrace},
		{"warmupGracePeriod", f.WarmupGrace},
	} {
		if period.value > f.GraceCeiling {
			errs = append(errs, fmt.Errorf("faultTolerance.%s is %s and gracePeriodCeiling %s: lower the first or raise the second",
				period.key, period.value, f.GraceCeiling))
		}
	}
	if f.AdmissionGrace > f.WarmupGrace {
		errs = append(errs, fmt.Errorf("faultTolerance.admissionGracePeriod is %s and warmupGracePeriod %s: lower the first or raise the second",
			f.AdmissionGrace, f.WarmupGrace))
	}
	if f.SuccessTTL <= 0 {
		errs = append(errs, fmt.Errorf("faultTolerance.successTTLCeiling is %s: write a number of nanoseconds above 0, such as %d for a week",
			f.SuccessTTL, 7*24*time.Hour))
	}
	return errors.Join(errs...)
}
