package appwrapper

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// jobTemplate is a Job whose template is not cached.
func jobTemplate(name string) string {
	return strings.Replace(wrappedJob(name, 1), `"image":"i"`, `"image":"i","args":["`+strings.Repeat("x", maxCachedTemplateBytes)+`"]`, 1)
}

func TestTransform(t *testing.T) {
	of := func(template string) *awv1beta2.AppWrapper {
		return wrapper([]string{template}, func(aw *awv1beta2.AppWrapper) {
			aw.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "the same again", "other": "stays"}
		})
	}
	for name, c := range map[string]struct {
		template string
		kept     bool
	}{"small": {wrappedJob("j", 1), true}, "large": {jobTemplate("j"), false}} {
		aw := of(c.template)
		if _, err := Transform(aw); err != nil || (aw.Spec.Components[0].Template.Raw != nil) != c.kept || len(aw.Annotations) != 1 {
			t.Errorf("%s: %d bytes, %v, %v", name, len(aw.Spec.Components[0].Template.Raw), aw.Annotations, err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "x"}}}
	if out, err := Transform(pod); err != nil || out != any(pod) || len(pod.Annotations) != 1 {
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
