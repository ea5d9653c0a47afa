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

// A workload whose pods are ready within a second costs the finalizer, its objects and two updates of its status, and one more when it ends.
func TestRequestsOfAShortWorkload(t *testing.T) {
	for phase, last := range map[corev1.PodPhase]awv1beta2.AppWrapperPhase{corev1.PodRunning: awv1beta2.PhaseRunning, corev1.PodSucceeded: awv1beta2.PhaseSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			w := newFixture(t, wrapper([]string{wrappedPod("a")}))
			for created(w, "a") == 0 {
				if _, err := w.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
			}
			w.clock.Step(time.Second / 2)
			w.setPodPhase(phase)
			w.must(last)
			w.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
			writes := []string{"patch AppWrapper train", "patch status AppWrapper train", "create Pod a", "patch status AppWrapper train"}
			if phase == corev1.PodSucceeded {
				writes = append(writes, "patch status AppWrapper train")
			}
			if !slices.Equal(w.writes, writes) {
				t.Errorf("writes:\n%s\nwant:\n%s", strings.Join(w.writes, "\n"), strings.Join(writes, "\n"))
			}
		})
	}
}

// [D13] [D15] A workload of two pods costs these requests, and idle reconciles cost none.
func TestRequestCounts(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a"), wrappedPod("b")}, annotated("successTTLDuration", "30s")))
	none := false
	w.reconcileWithCrash(&none)
	w.setPodPhase(corev1.PodRunning)
	w.reconcileWithCrash(&none)
	w.setPodPhase(corev1.PodSucceeded)
	w.reconcileWithCrash(&none)
	want := []string{
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

// The number of pods that ended waits for the next update; a state that the rules read does not.
func TestOnlyMessagesMayWait(t *testing.T) {
	status := func(change func(*awv1beta2.AppWrapperStatus)) *awv1beta2.AppWrapper {
		aw := &awv1beta2.AppWrapper{Status: awv1beta2.AppWrapperStatus{Phase: awv1beta2.PhaseRunning, Conditions: []metav1.Condition{
			{Type: awv1beta2.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: awv1beta2.ReasonSufficientPodsReady, Message: "1 pods running; 0 pods succeeded"},
		}}}
		change(&aw.Status)
		return aw
	}
	for name, tc := range map[string]struct {
		change func(*awv1beta2.AppWrapperStatus)
		waits  bool
	}{
		"message": {func(s *awv1beta2.AppWrapperStatus) { s.Conditions[0].Message = "0 pods running; 1 pods succeeded" }, true},
		"status":  {func(s *awv1beta2.AppWrapperStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, false},
		"reason":  {func(s *awv1beta2.AppWrapperStatus) { s.Conditions[0].Reason = awv1beta2.ReasonInsufficientPods }, false},
		"phase":   {func(s *awv1beta2.AppWrapperStatus) { s.Phase = awv1beta2.PhaseSucceeded }, false},
		"retries": {func(s *awv1beta2.AppWrapperStatus) { s.Retries++ }, false},
		"component": {func(s *awv1beta2.AppWrapperStatus) {
			s.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{{Name: "a"}}
		}, false},
	} {
		original := status(func(*awv1beta2.AppWrapperStatus) {})
		if got := onlyMessagesDiffer(original, status(tc.change)); got != tc.waits {
			t.Errorf("%s: %t", name, got)
		}
		if original.Status.Conditions[0].Message == "" {
			t.Error("the original was changed")
		}
	}
}
