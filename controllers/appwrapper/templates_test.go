package appwrapper

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// jobTemplate is a Job whose template is not cached.
func jobTemplate(name string) string {
	return strings.Replace(wrappedJob(name, 1), `"image":"i"`, `"image":"i","args":["`+strings.Repeat("x", maxCachedTemplateBytes)+`"]`, 1)
}

func TestTransform(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		kept     bool
	}{"small": {wrappedJob("j", 1), true}, "large": {jobTemplate("j"), false}} {
		aw := wrapper([]string{c.template})
		if _, err := Transform(aw); err != nil || (aw.Spec.Components[0].Template.Raw != nil) != c.kept {
			t.Errorf("%s: %d bytes, %v", name, len(aw.Spec.Components[0].Template.Raw), err)
		}
	}
	pod := &corev1.Pod{}
	if out, err := Transform(pod); err != nil || out != any(pod) {
		t.Errorf("another kind: %v, %v", out, err)
	}
}

// Templates that are not cached are read only when needed, also after a restart.
func TestUncachedTemplatesAreReadAtStart(t *testing.T) {
	w := newFixture(t, wrapper([]string{jobTemplate("j")}))
	w.must(awv1beta2.PhaseRunning)
	if !slices.Contains(w.writes, "create Job j") {
		t.Fatalf("writes %q", w.writes)
	}
	for _, process := range []string{"the first process", "the next process"} {
		w.must(awv1beta2.PhaseRunning)
		reads := count(w.reads, "get AppWrapper train")
		for range 5 {
			w.clock.Step(time.Second)
			w.must(awv1beta2.PhaseRunning)
		}
		if reads == 0 || count(w.reads, "get AppWrapper train") != reads {
			t.Errorf("%s read it %d times, and again at rest: %q", process, reads, w.reads)
		}
		w.restart()
	}
}
