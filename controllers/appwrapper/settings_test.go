package appwrapper

import (
	"strings"
	"testing"
	"time"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// [appwrapper-21] The default settings are valid.
func TestDefaultSettings(t *testing.T) {
	s := defaultSettings()
	if err := Validate(s.FaultTolerance); err != nil {
		t.Error(err)
	}
	if f := s.FaultTolerance; f.ResetPause != 90000000000 || f.SuccessTTLCeiling != 604800000000000 || f.RetryLimit != 3 {
		t.Errorf("got fault tolerance %+v, want the documented defaults", f)
	}
	effects := map[string]string{}
	for _, taint := range s.Autopilot.ResourceTaints["nvidia.com/gpu"] {
		effects[taint.Key+"="+taint.Value] = taint.Effect
	}
	if len(effects) != 3 || effects["autopilot.ibm.com/gpuhealth=EVICT"] != "NoExecute" {
		t.Errorf("got taints %v, want 3 with NoExecute for EVICT", effects)
	}
	if s.Clock == nil {
		t.Error("the settings have no clock")
	}
}

// [appwrapper-21] Validate rejects each invalid period, and its error names the field [D33].
func TestValidateSettings(t *testing.T) {
	const day = 24 * time.Hour
	for field, change := range map[string]func(*config.FaultTolerance){
		"deletionGracePeriod": func(f *config.FaultTolerance) { f.DeletionGracePeriod = day + 1 },
		"resetPause":          func(f *config.FaultTolerance) { f.ResetPause = day + 1 },
		"failureGracePeriod":  func(f *config.FaultTolerance) { f.FailureGracePeriod = day + 1 },
		"admissionGracePeriod is 24h0m0.000000001s": func(f *config.FaultTolerance) { f.AdmissionGracePeriod, f.WarmupGracePeriod = day+1, day+1 },
		"warmupGracePeriod":                         func(f *config.FaultTolerance) { f.WarmupGracePeriod = day + 1 },
		"admissionGracePeriod is 6m0s":              func(f *config.FaultTolerance) { f.AdmissionGracePeriod = 6 * time.Minute },
		"successTTLCeiling":                         func(f *config.FaultTolerance) { f.SuccessTTLCeiling = 0 },
	} {
		t.Run(field, func(t *testing.T) {
			f := defaultSettings().FaultTolerance
			change(&f)
			if err := Validate(f); err == nil || !strings.Contains(err.Error(), "faultTolerance."+field) {
				t.Errorf("got error %v, want one that names faultTolerance.%s", err, field)
			}
		})
	}
}
