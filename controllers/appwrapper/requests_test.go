package appwrapper

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// [D13] [D15] A workload of two pods costs these requests, and idle reconciles cost none.
func TestRequestCounts(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a"), wrappedPod("b")}, annotated("successTTLDuration", "30s")))
	none := false
	w.surviving(&none)
	w.play(corev1.PodRunning)
	w.surviving(&none)
	w.play(corev1.PodSucceeded)
	w.surviving(&none)
	want := []string{
		"patch status AppWrapper train", // Suspended
		"patch AppWrapper train",        // the finalizer
		"patch status AppWrapper train", // Resuming, and the components to create
		"create Pod a", "create Pod b",
		"patch status AppWrapper train", // Running
		"patch status AppWrapper train", // PodsReady
		"patch status AppWrapper train", // Succeeded
		"delete Pod a", "delete Pod b",
		"patch status AppWrapper train", // DeletingResources
		"patch status AppWrapper train", // cleaned up
	}
	if !slices.Equal(w.writes, want) {
		t.Errorf("writes:\n%s\nwant:\n%s", strings.Join(w.writes, "\n"), strings.Join(want, "\n"))
	}
	if len(w.reads) > 3 { // each component once, and the pods, before the end of the clean-up
		t.Errorf("live reads: %q", w.reads)
	}
	writes, reads := len(w.writes), len(w.reads)
	for range 5 {
		w.clock.Step(time.Hour)
		w.must(awv1beta2.PhaseSucceeded)
	}
	if len(w.writes) != writes || len(w.reads) != reads {
		t.Errorf("at rest: %q %q", w.writes[writes:], w.reads[reads:])
	}
}
