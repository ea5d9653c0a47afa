package appwrapper

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Settings are what the manager's configuration says about AppWrappers.
type Settings struct {
	config.AppWrapper
	// Authors says what no component may use.
	Authors admission.Rules
	// Clock tells the time.
	Clock clock.WithTicker
}

// SettingsOf are the settings by a configuration.
func SettingsOf(c config.AppWrapper) Settings {
	return Settings{AppWrapper: c, Clock: clock.RealClock{}}
}

// Validate returns an error for each period that contradicts another one. The keys are those of the configuration, below
// faultTolerance, whose values are nanoseconds.
func Validate(f config.FaultTolerance) error {
	var errs []error
	for _, period := range []struct {
		key   string
		value time.Duration
	}{
		{"deletionGracePeriod", f.DeletionGracePeriod},
		{"resetPause", f.ResetPause},
		{"failureGracePeriod", f.FailureGracePeriod},
		{"admissionGracePeriod", f.AdmissionGracePeriod},
		{"warmupGracePeriod", f.WarmupGracePeriod},
	} {
		if period.value > f.GracePeriodCeiling {
			errs = append(errs, fmt.Errorf("faultTolerance.%s is %s and gracePeriodCeiling %s: lower the first or raise the second",
				period.key, period.value, f.GracePeriodCeiling))
		}
	}
	if f.AdmissionGracePeriod > f.WarmupGracePeriod {
		errs = append(errs, fmt.Errorf("faultTolerance.admissionGracePeriod is %s and warmupGracePeriod %s: lower the first or raise the second",
			f.AdmissionGracePeriod, f.WarmupGracePeriod))
	}
	if f.SuccessTTLCeiling <= 0 {
		errs = append(errs, fmt.Errorf("faultTolerance.successTTLCeiling is %s: write a number of nanoseconds above 0, such as %d for a week",
			f.SuccessTTLCeiling, 7*24*time.Hour))
	}
	return errors.Join(errs...)
}
