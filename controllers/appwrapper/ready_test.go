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
		return rules.NewCondition(awv1beta2.ConditionUnhealthy, status, "Unhealthy"+string(status), "a pod fails")
	}
	for name, tc := range map[string]struct {
		phase      awv1beta2.AppWrapperPhase
		conditions []metav1.Condition
		status     metav1.ConditionStatus
		reason     string
	}{
		"suspended": {awv1beta2.PhaseSuspended, nil, "False", "Suspended"},
		"resuming":  {awv1beta2.PhaseResuming, nil, "False", "Resuming"},
		"resuming with a rejected component": {awv1beta2.PhaseResuming, []metav1.Condition{
			rules.NewCondition(awv1beta2.ConditionPodsReady, "False", awv1beta2.ReasonCreateFailed, "violates PodSecurity"),
		}, "False", "CreateFailed"},
		"running without PodsReady":    {awv1beta2.PhaseRunning, nil, "False", "Running"},
		"running with PodsReady False": {awv1beta2.PhaseRunning, []metav1.Condition{pods("False")}, "False", "PodsFalse"},
		"running with PodsReady True":  {awv1beta2.PhaseRunning, []metav1.Condition{pods("True"), unhealthy("False")}, "True", "PodsTrue"},
		"running and unhealthy":        {awv1beta2.PhaseRunning, []metav1.Condition{pods("True"), unhealthy("True")}, "False", "UnhealthyTrue"},
		"resetting":                    {awv1beta2.PhaseResetting, []metav1.Condition{unhealthy("True")}, "False", "Resetting"},
		"failed":                       {awv1beta2.PhaseFailed, []metav1.Condition{unhealthy("True")}, "False", "Failed"},
		"succeeded":                    {awv1beta2.PhaseSucceeded, []metav1.Condition{pods("False")}, "True", "Succeeded"},
		"unknown phase":                {"Paused", nil, "False", "Paused"},
		"suspending":                   {awv1beta2.PhaseSuspending, []metav1.Condition{pods("True")}, "False", "Suspending"},
	} {
		aw := &awv1beta2.AppWrapper{}
		aw.Status.Phase = tc.phase
		for _, c := range tc.conditions {
			setCondition(&aw.Status.Conditions, c, time.Now())
		}
		if got := readyCondition(aw); got.Status != tc.status || got.Reason != tc.reason || got.Message == "" {
			t.Errorf("%s: got condition %+v, want status %s, reason %s and a message", name, got, tc.status, tc.reason)
		}
	}
	failed := &awv1beta2.AppWrapper{}
	failed.Status.Phase = awv1beta2.PhaseFailed
	failed.Status.LastFailure = &awv1beta2.AppWrapperFailure{Reason: "FoundFailedPods", Message: "exit 3"}
	if got := readyCondition(failed).Message; got != "the workload failed: FoundFailedPods: exit 3" {
		t.Errorf("got message %q, want %q", got, "the workload failed: FoundFailedPods: exit 3")
	}
}
