package appwrapper

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// [appwrapper-21] The defaults hold together.
func TestDefaultSettings(t *testing.T) {
	s := DefaultSettings()
	if err := s.FaultTolerance.Validate(); err != nil {
		t.Error(err)
	}
	if f := s.FaultTolerance; f.RetryPause != 90000000000 || f.SuccessTTL != 604800000000000 || f.RetryLimit != 3 {
		t.Errorf("fault tolerance %+v", f)
	}
	effects := map[string]corev1.TaintEffect{}
	for _, taint := range s.Autopilot.ResourceTaints["nvidia.com/gpu"] {
		effects[taint.Key+"="+taint.Value] = taint.Effect
	}
	if len(effects) != 3 || effects["autopilot.ibm.com/gpuhealth=EVICT"] != corev1.TaintEffectNoExecute {
		t.Errorf("taints %v", effects)
	}
	if s.Clock == nil {
		t.Error("no clock")
	}
}

// [appwrapper-21] Each of the seven rules refuses its counter-example, and names the right field (D33).
func TestSettingsRules(t *testing.T) {
	const day = 24 * time.Hour
	for field, breakIt := range map[string]func(*FaultTolerance){
		"deletionGracePeriod": func(f *FaultTolerance) { f.DeletionGrace = day + 1 },
		"resetPause":          func(f *FaultTolerance) { f.RetryPause = day + 1 },
		"failureGracePeriod":  func(f *FaultTolerance) { f.FailureGrace = day + 1 },
		"admissionGracePeriod is 24h0m0.000000001s": func(f *FaultTolerance) { f.AdmissionGrace, f.WarmupGrace = day+1, day+1 },
		"warmupGracePeriod":                         func(f *FaultTolerance) { f.WarmupGrace = day + 1 },
		"admissionGracePeriod is 6m0s":              func(f *FaultTolerance) { f.AdmissionGrace = 6 * time.Minute },
		"successTTLCeiling":                         func(f *FaultTolerance) { f.SuccessTTL = 0 },
	} {
		t.Run(field, func(t *testing.T) {
			f := DefaultSettings().FaultTolerance
			breakIt(&f)
			if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "faultTolerance."+field) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWeightOf(t *testing.T) {
	if got := WeightOf(nil); got != 1 {
		t.Errorf("null gives %d, want 1", got)
	}
	if got := WeightOf(new(int32(7))); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
