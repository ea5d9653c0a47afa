package appwrapper

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// Ready shows the state of a workload to tools that do not know the phases.
func TestReadyFollowsPhaseAndConditions(t *testing.T) {
	pods := func(status metav1.ConditionStatus) metav1.Condition {
		return rules.NewCondition(awv1beta2.ConditionPodsReady, status, "Pods"+string(status), "1 pod")
	}
	unhealthy := func(status metav1.ConditionStatus) metav1.Condition {
		return rules.NewCondition(awv1beta2.ConditionUnhealthy, status, "Sick"+string(status), "a pod fails")
	}
	for name, tc := range map[string]struct {
		phase      awv1beta2.AppWrapperPhase
		conditions []metav1.Condition
		status     metav1.ConditionStatus
		reason     string
	}{
		"waits":  {awv1beta2.PhaseSuspended, nil, "False", "Suspended"},
		"begins": {awv1beta2.PhaseResuming, nil, "False", "Resuming"},
		"rejected": {awv1beta2.PhaseResuming, []metav1.Condition{
			rules.NewCondition(awv1beta2.ConditionPodsReady, "False", awv1beta2.ReasonCreateFailed, "violates PodSecurity"),
		}, "False", "CreateFailed"},
		"has no pods yet":  {awv1beta2.PhaseRunning, nil, "False", "Running"},
		"pods are coming":  {awv1beta2.PhaseRunning, []metav1.Condition{pods("False")}, "False", "PodsFalse"},
		"runs":             {awv1beta2.PhaseRunning, []metav1.Condition{pods("True"), unhealthy("False")}, "True", "PodsTrue"},
		"runs and is sick": {awv1beta2.PhaseRunning, []metav1.Condition{pods("True"), unhealthy("True")}, "False", "SickTrue"},
		"is tried again":   {awv1beta2.PhaseResetting, []metav1.Condition{unhealthy("True")}, "False", "Resetting"},
		"failed":           {awv1beta2.PhaseFailed, []metav1.Condition{unhealthy("True")}, "False", "Failed"},
		"succeeded":        {awv1beta2.PhaseSucceeded, []metav1.Condition{pods("False")}, "True", "Succeeded"},
		"an unknown phase": {"Paused", nil, "False", "Paused"},
		"evicted by Kueue": {awv1beta2.PhaseSuspending, []metav1.Condition{pods("True")}, "False", "Suspending"},
	} {
		aw := &awv1beta2.AppWrapper{}
		aw.Status.Phase = tc.phase
		for _, c := range tc.conditions {
			setCondition(&aw.Status.Conditions, c, time.Now())
		}
		if got := readyCondition(aw); got.Status != tc.status || got.Reason != tc.reason || got.Message == "" {
			t.Errorf("%s: got condition %+v, want the expected status and reason, and a message", name, got)
		}
	}
	failed := &awv1beta2.AppWrapper{}
	failed.Status.Phase = awv1beta2.PhaseFailed
	failed.Status.LastFailure = &awv1beta2.AppWrapperFailure{Reason: "FoundFailedPods", Message: "exit 3"}
	if got := readyCondition(failed).Message; got != "the workload failed: FoundFailedPods: exit 3" {
		t.Errorf("message %q, want %q", got, "the workload failed: FoundFailedPods: exit 3")
	}
}
