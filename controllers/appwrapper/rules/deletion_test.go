package rules

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var fullyDeleted = deletionResult(Deletion{})

func deletingFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionDeletingResources, metav1.ConditionTrue, awv1beta2.ReasonDeletionInitiated, ago)
}

func pausedFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionDeletingResources, metav1.ConditionFalse, awv1beta2.ReasonDeletionPaused, ago)
}

func withConditionsFalse(conditionTypes ...string) change {
	return func(f *Facts) {
		for _, conditionType := range conditionTypes {
			condition(conditionType, metav1.ConditionFalse, "Test", time.Minute)(f)
		}
	}
}

const (
	resourcesDeployed, quotaReserved = awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved
	deletionInitiated                = "DeletingResources=True/DeletionInitiated"
	deletionComplete                 = "DeletingResources=False/DeletionComplete"
)

func TestRulesWhileResetting(t *testing.T) {
	runCases(t, awv1beta2.PhaseResetting, whileResetting, []ruleCase{
		{"suspended", []change{withSuspend}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, requeueAfter: Immediately}},
		{"deletion not started", nil, want{rule: "delete resources", action: DeleteComponents}},
		{"objects remain", []change{deletionResult(Deletion{Objects: 1}), podsReady(time.Minute)}, want{rule: "delete resources", requeueAfter: 10 * time.Minute,
			conditions: []string{deletionInitiated, "PodsReady=False/Resetting"}}},
		{"pods remain", []change{deletionResult(Deletion{Pods: 1}), deletingFor(time.Minute)}, want{rule: "delete resources", requeueAfter: 9 * time.Minute, conditions: []string{deletionInitiated}}},
		{"unwatched objects remain", []change{deletionResult(Deletion{Objects: 1, Unwatched: true})}, want{rule: "delete resources", requeueAfter: DeletionPollInterval, conditions: []string{deletionInitiated}}},
		{"deletion failed", []change{deletionResult(Deletion{Err: errors.New("forbidden")})}, want{rule: "delete resources", requeueAfter: DeletionPollInterval, conditions: []string{deletionInitiated}}},
		{"forceful deletion period expired", []change{deletingFor(10 * time.Minute)}, want{rule: "delete resources", action: ForceDeletion}},
		{"pods remain after forced deletion", []change{deletingFor(10 * time.Minute), deletionResult(Deletion{Pods: 2})}, want{rule: "delete resources", requeueAfter: DeletionPollInterval, conditions: []string{deletionInitiated}}},
		{"no object remains", []change{fullyDeleted, deletingFor(time.Second)}, want{rule: "delete resources", requeueAfter: Immediately,
			conditions: []string{"ResourcesDeployed=False/Resetting", deletionComplete}}},
		{"retry pause not over", []change{withConditionsFalse(resourcesDeployed), unhealthy(80 * time.Second)}, want{rule: "pause", requeueAfter: 10 * time.Second}},
		{"retry pause over", []change{withConditionsFalse(resourcesDeployed), unhealthy(90 * time.Second), podsReadyLost(2 * time.Minute)}, want{rule: "resume", next: awv1beta2.PhaseResuming,
			requeueAfter: Immediately, conditions: []string{"ResourcesDeployed=True/Resuming", "Unhealthy=False/Resuming", "PodsReady=False/Resetting"}}},
		{"components were changed", []change{withChangedComponents, withConditionsFalse(resourcesDeployed), unhealthy(90 * time.Second)}, want{rule: "components were changed",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/ComponentsChanged"}}},
	})
}

// [D20] Resuming sets Unhealthy to False: a second failure then has its own grace period.
func TestSecondFailureHasItsOwnGracePeriod(t *testing.T) {
	d := Decide(whileResetting, newFacts(awv1beta2.PhaseResetting, withConditionsFalse(resourcesDeployed)))
	if c := meta.FindStatusCondition(d.Conditions, awv1beta2.ConditionUnhealthy); c == nil || c.Status != metav1.ConditionFalse {
		t.Fatalf("got Unhealthy %+v, want False", c)
	}
	if !d.Announce {
		t.Error("want the components announced")
	}
	d = Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, pods(0, 1, 0, 1),
		condition(awv1beta2.ConditionUnhealthy, metav1.ConditionFalse, awv1beta2.ReasonResuming, time.Second)))
	if d.NextPhase != "" || d.RequeueAfter != time.Minute {
		t.Errorf("got next phase %q, requeue after %s, want none and 1m", d.NextPhase, d.RequeueAfter)
	}
}

func TestRulesWhileSuspending(t *testing.T) {
	suspendedConditions := []string{"QuotaReserved=False/Suspended", "ResourcesDeployed=False/Suspended"}
	runCases(t, awv1beta2.PhaseSuspending, whileSuspending, []ruleCase{
		{"no longer suspended", nil, want{rule: "delete resources", action: DeleteComponents}},
		{"objects remain", []change{withSuspend, deletionResult(Deletion{Objects: 1})}, want{rule: "delete resources", requeueAfter: 10 * time.Minute, conditions: []string{deletionInitiated}}},
		{"no object remains", []change{withSuspend, fullyDeleted, podsReady(time.Minute), unhealthy(time.Minute)}, want{rule: "delete resources", next: awv1beta2.PhaseSuspended,
			requeueAfter: Immediately, conditions: append(suspendedConditions, "PodsReady=False/Suspended", "Unhealthy=False/Suspended")}},
		{"resources not deployed", []change{withSuspend, withConditionsFalse(resourcesDeployed)}, want{rule: "suspended", next: awv1beta2.PhaseSuspended, requeueAfter: Immediately, conditions: suspendedConditions}},
		{"resources not deployed, pods exist", []change{withSuspend, withConditionsFalse(resourcesDeployed), pods(1, 0, 0, 0)}, want{rule: "delete resources", action: DeleteComponents}},
	})
}

// [D1] [appwrapper-52] The time to live starts when the workload completes, not when it starts.
func TestRulesWhileSucceeded(t *testing.T) {
	ttl := withTerms(func(t *Terms) { t.SuccessTTL = 10 * time.Minute })
	runCases(t, awv1beta2.PhaseSucceeded, whileSucceeded, []ruleCase{
		{"no completion time", []change{func(f *Facts) { f.CompletionTime = nil }}, want{rule: "set completion time", requeueAfter: Immediately}},
		{"resources are deleted", []change{withConditionsFalse(resourcesDeployed)}, want{rule: "resources are deleted"}},
		{"resources are deleted, PodsReady True", []change{withConditionsFalse(resourcesDeployed), podsReady(time.Hour)}, want{rule: "resources are deleted"}},
		{"completed a minute ago after an hour", []change{ttl, deployedFor(time.Hour), completed(time.Minute)}, want{rule: "wait for the time to live", requeueAfter: 9 * time.Minute}},
		{"time to live expired", []change{ttl, completed(10 * time.Minute)}, want{rule: "delete resources", action: DeleteComponents}},
		{"deletion started, time to live raised", []change{deletingFor(time.Minute)}, want{rule: "delete resources", action: DeleteComponents}},
		{"suspended after success", []change{withSuspend, completed(time.Minute), ttl}, want{rule: "wait for the time to live", requeueAfter: 9 * time.Minute}},
		{"no object remains", []change{ttl, fullyDeleted}, want{rule: "delete resources", conditions: []string{"ResourcesDeployed=False/Succeeded"}}},
	})
	d := Decide(whileSucceeded, newFacts(awv1beta2.PhaseSucceeded, ttl, fullyDeleted))
	if got := d.Conditions[0].Message; got != "Time to live after success of 10m0s expired" {
		t.Errorf("got message %q, want %q", got, "Time to live after success of 10m0s expired")
	}
	d = Decide(whileSucceeded, newFacts(awv1beta2.PhaseSucceeded, func(f *Facts) { f.CompletionTime = nil }))
	if d.CompletionTime == nil || !d.CompletionTime.Equal(noon.Add(-10*time.Minute)) {
		t.Errorf("got completion time %v, want the time when the quota was released", d.CompletionTime)
	}
}

// [D2] [D35] [appwrapper-53] The delay starts with the failure. A started deletion is not delayed.
func TestRulesWhileFailed(t *testing.T) {
	delay := withTerms(func(t *Terms) { t.DeletionOnFailure = 10 * time.Minute })
	failedConditions := []string{"ResourcesDeployed=False/Failed", "QuotaReserved=False/Failed"}
	runCases(t, awv1beta2.PhaseFailed, whileFailed, []ruleCase{
		{"no completion time", []change{func(f *Facts) { f.CompletionTime = nil }}, want{rule: "set completion time", requeueAfter: Immediately}},
		{"resources are deleted", []change{withConditionsFalse(resourcesDeployed, quotaReserved)}, want{rule: "resources are deleted"}},
		{"resources are deleted, PodsReady True", []change{withConditionsFalse(resourcesDeployed, quotaReserved), podsReady(time.Hour)}, want{rule: "resources are deleted", conditions: []string{"PodsReady=False/Failed"}}},
		{"deletion delayed", []change{delay, completed(4 * time.Minute)}, want{rule: "wait for the deletion grace period", requeueAfter: 6 * time.Minute, conditions: []string{"DeletingResources=False/DeletionPaused"}}},
		{"deletion delayed, after an earlier reset", []change{delay, completed(4 * time.Minute), withConditionsFalse(awv1beta2.ConditionDeletingResources)},
			want{rule: "wait for the deletion grace period", requeueAfter: 6 * time.Minute, conditions: []string{"DeletingResources=False/DeletionPaused"}}},
		{"suspended before the delay expired", []change{delay, completed(4 * time.Minute), withSuspend}, want{rule: "delete resources", action: DeleteComponents}},
		{"delay expired", []change{delay, pausedFor(10 * time.Minute)}, want{rule: "delete resources", action: DeleteComponents}},
		{"deletion started, suspended", []change{delay, completed(time.Minute), deletingFor(time.Second), withSuspend}, want{rule: "delete resources", action: DeleteComponents}},
		{"deletion started, no longer suspended", []change{delay, completed(time.Minute), deletingFor(time.Second)}, want{rule: "delete resources", action: DeleteComponents}},
		{"objects remain", []change{deletionResult(Deletion{Objects: 1}), deletingFor(time.Minute)}, want{rule: "delete resources", requeueAfter: 9 * time.Minute, conditions: []string{deletionInitiated}}},
		{"no object remains", []change{fullyDeleted, deletingFor(time.Minute)}, want{rule: "delete resources", conditions: append(failedConditions, deletionComplete)}},
		{"resources not deployed, pods and quota exist", []change{withConditionsFalse(resourcesDeployed), pods(0, 1, 0, 0)}, want{rule: "delete resources", action: DeleteComponents}},
	})
	for _, suspended := range []bool{false, true} {
		d := Decide(whileFailed, newFacts(awv1beta2.PhaseFailed, delay, fullyDeleted, func(f *Facts) { f.Suspend = suspended }))
		want := map[bool]string{false: "Resources deleted for failed AppWrapper", true: "Kueue forced resource deletion by suspending AppWrapper"}[suspended]
		if got := d.Conditions[0].Message; got != want {
			t.Errorf("suspend %t: got message %q, want %q", suspended, got, want)
		}
	}
	d := Decide(whileFailed, newFacts(awv1beta2.PhaseFailed, delay, completed(time.Minute)))
	if got := d.Conditions[0].Message; got != "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration has value 10m0s" {
		t.Errorf("got message %q, want %q", got, "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration has value 10m0s")
	}
}

func TestCompletionTimeOfLegacyFailure(t *testing.T) {
	withoutCompletionTime := func(f *Facts) { f.CompletionTime = nil }
	if got := newFacts(awv1beta2.PhaseFailed, withoutCompletionTime, pausedFor(3*time.Minute)).completionTime(); !got.Equal(noon.Add(-3 * time.Minute)) {
		t.Errorf("deletion paused three minutes ago: got %s", got)
	}
	if got := newFacts(awv1beta2.PhaseFailed, withoutCompletionTime).completionTime(); !got.Equal(noon) {
		t.Errorf("no condition: got %s, want the current time", got)
	}
}

func TestRulesWhileTerminating(t *testing.T) {
	runCases(t, awv1beta2.PhaseRunning, WhileTerminating, []ruleCase{
		{"deletion not started", nil, want{rule: "delete resources", action: DeleteComponents}},
		{"objects remain", []change{deletionResult(Deletion{Objects: 1})}, want{rule: "delete resources", next: awv1beta2.PhaseTerminating, requeueAfter: 10 * time.Minute, conditions: []string{deletionInitiated}}},
		{"pods remain in phase Terminating", []change{func(f *Facts) { f.Phase = awv1beta2.PhaseTerminating }, deletionResult(Deletion{Pods: 1}), deletingFor(time.Minute)},
			want{rule: "delete resources", requeueAfter: 9 * time.Minute, conditions: []string{deletionInitiated}}},
		{"no object remains", []change{fullyDeleted, deletingFor(time.Minute)}, want{rule: "delete resources", requeueAfter: Immediately,
			conditions: []string{"ResourcesDeployed=False/Terminating", "QuotaReserved=False/Terminating", deletionComplete}}},
		{"resources not deployed, quota reserved", []change{withConditionsFalse(resourcesDeployed)}, want{rule: "release quota", requeueAfter: Immediately, conditions: []string{"QuotaReserved=False/Terminating"}}},
		{"resources not deployed, quota released", []change{withConditionsFalse(resourcesDeployed, quotaReserved)}, want{rule: "remove finalizer"}},
	})
	if d := Decide(WhileTerminating, newFacts(awv1beta2.PhaseRunning, withConditionsFalse(resourcesDeployed, quotaReserved))); !d.RemoveFinalizer {
		t.Error("want the finalizer removed")
	}
}

func TestDecideIgnoresUnknownPhase(t *testing.T) {
	compare(t, Decide(ByPhase["Paused"], newFacts("Paused")), want{rule: "unknown phase"})
}
