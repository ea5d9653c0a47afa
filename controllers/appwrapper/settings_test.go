package appwrapper

import (
	"strings"
	"testing"
	"time"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// [appwrapper-21] The defaults are consistent.
func TestDefaultSettings(t *testing.T) {
	s := defaultSettings()
	if err := Validate(s.FaultTolerance); err != nil {
		t.Error(err)
	}
	if f := s.FaultTolerance; f.ResetPause != 90000000000 || f.SuccessTTLCeiling != 604800000000000 || f.RetryLimit != 3 {
		t.Errorf("fault tolerance %+v", f)
	}
	effects := map[string]string{}
	for _, taint := range s.Autopilot.ResourceTaints["nvidia.com/gpu"] {
		effects[taint.Key+"="+taint.Value] = taint.Effect
	}
	if len(effects) != 3 || effects["autopilot.ibm.com/gpuhealth=EVICT"] != "NoExecute" {
		t.Errorf("taints %v", effects)
	}
	if s.Clock == nil {
		t.Error("the settings have no clock")
	}
}

// [appwrapper-21] Each of the seven rules rejects its counter-example and names the right field [D33].
func TestSettingsRules(t *testing.T) {
	const day = 24 * time.Hour
	for field, breakIt := range map[string]func(*config.FaultTolerance){
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
			breakIt(&f)
			if err := Validate(f); err == nil || !strings.Contains(err.Error(), "faultTolerance."+field) {
				t.Errorf("got error %v, want one that names faultTolerance.%s", err, field)
			}
		})
	}
}
