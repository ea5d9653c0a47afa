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

// A workload whose pods are ready within a second needs one write for the finalizer, one for each object and two for the status. Its end
// needs one more.
func TestRequestsOfShortWorkload(t *testing.T) {
	for phase, wantPhase := range map[corev1.PodPhase]awv1beta2.AppWrapperPhase{corev1.PodRunning: awv1beta2.PhaseRunning, corev1.PodSucceeded: awv1beta2.PhaseSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
			for creationCount(f, "a") == 0 {
				if _, err := f.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
			}
			f.clock.Step(time.Second / 2)
			f.setPodPhase(phase)
			f.reconcileToPhase(wantPhase)
			f.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
			wantWrites := []string{"patch AppWrapper train", "patch status AppWrapper train", "create Pod a", "patch status AppWrapper train"}
			if phase == corev1.PodSucceeded {
				wantWrites = append(wantWrites, "patch status AppWrapper train")
			}
			if !slices.Equal(f.writes, wantWrites) {
				t.Errorf("got writes:\n%s\nwant:\n%s", strings.Join(f.writes, "\n"), strings.Join(wantWrites, "\n"))
			}
		})
	}
}

// [D13] [D15] A workload of two pods needs a fixed number of requests, and idle reconciles need none.
func TestRequestCounts(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a"), podJSON("b")}, withAnnotations("successTTLDuration", "30s")))
	crashed := false
	f.reconcileWithCrash(&crashed)
	f.setPodPhase(corev1.PodRunning)
	f.reconcileWithCrash(&crashed)
	f.setPodPhase(corev1.PodSucceeded)
	f.reconcileWithCrash(&crashed)
	want := []string{
		"patch AppWrapper train",        // the finalizer
		"patch status AppWrapper train", // Resuming, and the components to create
		"create Pod a", "create Pod b",
		"patch status AppWrapper train", // Running
		"patch status AppWrapper train", // PodsReady
		"patch status AppWrapper train", // Succeeded
		"delete Pod a", "delete Pod b",
		"patch status AppWrapper train", // DeletingResources
		"patch status AppWrapper train", // ResourcesDeployed False
	}
	if !slices.Equal(f.writes, want) {
		t.Errorf("got writes:\n%s\nwant:\n%s", strings.Join(f.writes, "\n"), strings.Join(want, "\n"))
	}
	if len(f.reads) > 3 { // one for each component and one for pods, before the deletion is complete
		t.Errorf("got live reads %q, want at most 3", f.reads)
	}
	writes, reads := len(f.writes), len(f.reads)
	for range 5 {
		f.clock.Step(time.Hour)
		f.reconcileToPhase(awv1beta2.PhaseSucceeded)
	}
	if len(f.writes) != writes || len(f.reads) != reads {
		t.Errorf("idle reconciles: got writes %q, reads %q, want none", f.writes[writes:], f.reads[reads:])
	}
}

// Only a change of messages may wait for the next status update: rules read all other fields.
func TestOnlyMessagesDiffer(t *testing.T) {
	status := func(change func(*awv1beta2.AppWrapperStatus)) *awv1beta2.AppWrapper {
		aw := &awv1beta2.AppWrapper{Status: awv1beta2.AppWrapperStatus{Phase: awv1beta2.PhaseRunning, Conditions: []metav1.Condition{
			{Type: awv1beta2.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: awv1beta2.ReasonSufficientPodsReady, Message: "1 pods running; 0 pods succeeded"},
		}}}
		change(&aw.Status)
		return aw
	}
	for name, tc := range map[string]struct {
		change func(*awv1beta2.AppWrapperStatus)
		want   bool
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
		if got := onlyMessagesDiffer(original, status(tc.change)); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
		if original.Status.Conditions[0].Message == "" {
			t.Error("onlyMessagesDiffer changed its argument")
		}
	}
}
