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

// [D31] Transitions send Events, failures with type Warning.
func TestTransitionsSendEvents(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("retryLimit", "1", "failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "0s")))
	none := false
	w.reconcileWithCrash(&none)
	w.setPodPhase(corev1.PodFailed)
	w.reconcileWithCrash(&none)
	w.setPodPhase(corev1.PodFailed)
	w.reconcileWithCrash(&none)
	var reported []string
	for len(w.events.Events) > 0 {
		reported = append(reported, <-w.events.Events)
	}
	want := []string{
		"Normal Running All components are created",
		"Warning Unhealthy FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
		"Normal Running All components are created",
		"Warning Unhealthy FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
		"Warning Failed Failed permanently after 1 retries: FoundFailedPods: 1 failed pods; pod a: container main ended with exit code 3 (Error)",
	}
	if !slices.Equal(reported, want) {
		t.Errorf("reported:\n%s\nwant:\n%s", strings.Join(reported, "\n"), strings.Join(want, "\n"))
	}
}

func TestTransitionEvents(t *testing.T) {
	in := func(phase awv1beta2.AppWrapperPhase) *awv1beta2.AppWrapper {
		aw := wrapper(nil)
		aw.Status.Phase = phase
		return aw
	}
	if got := transitionEvents(in(awv1beta2.PhaseResuming), in(awv1beta2.PhaseSuspending)); len(got) != 1 || got[0] != (eventRecord{"Normal", "Suspending", "Externally suspended while in the Resuming phase"}) {
		t.Errorf("suspended: %+v", got)
	}
	if got := transitionEvents(in(awv1beta2.PhaseRunning), in(awv1beta2.PhaseSucceeded)); len(got) != 1 || got[0].severity != "Normal" || got[0].reason != "Succeeded" {
		t.Errorf("succeeded: %+v", got)
	}
	if got := transitionEvents(in(awv1beta2.PhaseEmpty), in(awv1beta2.PhaseSuspended)); len(got) != 0 {
		t.Errorf("taken up: %+v", got)
	}
}

// [D16] Every stored transition is counted once.
func TestPhaseCounter(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	value := func(phase awv1beta2.AppWrapperPhase) float64 {
		m := &dto.Metric{}
		if err := phaseTransitions.WithLabelValues("team", string(phase)).Write(m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	before := value(awv1beta2.PhaseRunning)
	w.must(awv1beta2.PhaseRunning)
	for range 3 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if got := value(awv1beta2.PhaseRunning) - before; got != 1 {
		t.Errorf("counted %v times", got)
	}
	other := phaseTransitions.WithLabelValues("other", "Running")
	other.Inc()
	forgetNamespace(t.Context(), event.DeleteEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}, nil)
	if phaseTransitions.DeletePartialMatch(prometheus.Labels{"namespace": "team"}) != 0 || phaseTransitions.DeletePartialMatch(prometheus.Labels{"namespace": "other"}) == 0 {
		t.Error("want only the metrics of the deleted namespace removed")
	}
}
