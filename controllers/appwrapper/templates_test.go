package appwrapper

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// largeJobJSON returns a template that is too large for the cache.
func largeJobJSON(name string) string {
	return strings.Replace(jobJSON(name, 1), `"image":"i"`, `"image":"i","args":["`+strings.Repeat("x", maxCachedTemplateBytes)+`"]`, 1)
}

func TestTransform(t *testing.T) {
	for name, tc := range map[string]struct {
		template   string
		wantCached bool
	}{"small": {jobJSON("j", 1), true}, "large": {largeJobJSON("j"), false}} {
		aw := newAppWrapper([]string{tc.template})
		if _, err := Transform(aw); err != nil || (aw.Spec.Components[0].Template.Raw != nil) != tc.wantCached {
			t.Errorf("%s: got a template of %d bytes, error %v", name, len(aw.Spec.Components[0].Template.Raw), err)
		}
	}
	pod := &corev1.Pod{}
	if out, err := Transform(pod); err != nil || out != any(pod) {
		t.Errorf("another kind: got %v, error %v, want it unchanged", out, err)
	}
}

// Templates that are not cached are read only when needed, even after a restart.
func TestUncachedTemplatesAreReadOnlyWhenNeeded(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{largeJobJSON("j")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if !slices.Contains(f.writes, "create Job j") {
		t.Fatalf("got writes %q, want the Job created", f.writes)
	}
	for _, process := range []string{"first process", "second process"} {
		f.reconcileToPhase(awv1beta2.PhaseRunning)
		reads := countRequests(f.reads, "get AppWrapper train")
		for range 5 {
			f.clock.Step(time.Second)
			f.reconcileToPhase(awv1beta2.PhaseRunning)
		}
		if reads == 0 {
			t.Errorf("%s: got no read, want at least one; reads %q", process, f.reads)
		}
		if got := countRequests(f.reads, "get AppWrapper train"); got != reads {
			t.Errorf("%s: got %d reads from idle reconciles, want none; reads %q", process, got-reads, f.reads)
		}
		f.restart()
		f.reads = nil
	}
}
