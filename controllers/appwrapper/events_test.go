package appwrapper

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// [D31] Transitions send Events. Events of failures have the type Warning.
func TestTransitionsSendEvents(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("retryLimit", "1", "failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "0s")))
	crashed := false
	f.reconcileWithCrash(&crashed)
	f.setPodPhase(corev1.PodFailed)
	f.reconcileWithCrash(&crashed)
	f.setPodPhase(corev1.PodFailed)
	f.reconcileWithCrash(&crashed)
	var events []string
	for len(f.events.Events) > 0 {
		events = append(events, <-f.events.Events)
	}
	want := []string{
		"Normal Running All components are created",
		"Warning Unhealthy FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
		"Normal Running All components are created",
		"Warning Unhealthy FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
		"Warning Failed Failed permanently after 1 retries: FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
	}
	if !slices.Equal(events, want) {
		t.Errorf("got Events:\n%s\nwant:\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
}

func TestTransitionEvents(t *testing.T) {
	withPhase := func(phase awv1beta2.AppWrapperPhase) *awv1beta2.AppWrapper {
		aw := newAppWrapper(nil)
		aw.Status.Phase = phase
		return aw
	}
	if got := transitionEvents(withPhase(awv1beta2.PhaseResuming), withPhase(awv1beta2.PhaseSuspending)); len(got) != 1 || got[0] != (eventRecord{"Normal", "Suspending", "Externally suspended while in the Resuming phase"}) {
		t.Errorf("to Suspending: got %+v", got)
	}
	if got := transitionEvents(withPhase(awv1beta2.PhaseRunning), withPhase(awv1beta2.PhaseSucceeded)); len(got) != 1 || got[0].eventType != "Normal" || got[0].reason != "Succeeded" {
		t.Errorf("to Succeeded: got %+v", got)
	}
	if got := transitionEvents(withPhase(awv1beta2.PhaseEmpty), withPhase(awv1beta2.PhaseSuspended)); len(got) != 0 {
		t.Errorf("to Suspended: got %+v, want none", got)
	}
}

// [D16] The counter counts each stored transition once.
func TestPhaseCounter(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	value := func(phase awv1beta2.AppWrapperPhase) float64 {
		m := &dto.Metric{}
		if err := phaseTransitions.WithLabelValues("team", string(phase)).Write(m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	before := value(awv1beta2.PhaseRunning)
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	for range 3 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if got := value(awv1beta2.PhaseRunning) - before; got != 1 {
		t.Errorf("got a count of %v, want 1", got)
	}
	other := phaseTransitions.WithLabelValues("other", "Running")
	other.Inc()
	forgetNamespace(t.Context(), event.DeleteEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}, nil)
	if phaseTransitions.DeletePartialMatch(prometheus.Labels{"namespace": "team"}) != 0 || phaseTransitions.DeletePartialMatch(prometheus.Labels{"namespace": "other"}) == 0 {
		t.Error("want only the series of the deleted namespace removed")
	}
}
