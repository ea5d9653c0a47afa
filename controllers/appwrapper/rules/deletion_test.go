package rules

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var nothingLeft = deletionResult(Deletion{})

func deletingFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionDeletingResources, metav1.ConditionTrue, awv1beta2.ReasonDeletionInitiated, ago)
}

func pausedFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionDeletingResources, metav1.ConditionFalse, awv1beta2.ReasonDeletionPaused, ago)
}

func withConditionsFalse(kinds ...string) change {
	return func(f *Facts) {
		for _, kind := range kinds {
			condition(kind, metav1.ConditionFalse, "Test", time.Minute)(f)
		}
	}
}

const (
	rd, qr   = awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved
	deleting = "DeletingResources=True/DeletionInitiated"
	deleted  = "DeletingResources=False/DeletionComplete"
)

func TestRulesWhileResetting(t *testing.T) {
	runCases(t, awv1beta2.PhaseResetting, whileResetting, []ruleCase{
		{"suspend wins", []change{suspend}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, again: Immediately}},
		{"delete", nil, want{rule: "delete resources", act: DeleteComponents}},
		{"something is left", []change{deletionResult(Deletion{Objects: 1}), podsReady(time.Minute)}, want{rule: "delete resources", again: 10 * time.Minute,
			sets: []string{deleting, "PodsReady=False/Resetting"}}},
		{"pods are left", []change{deletionResult(Deletion{Pods: 1}), deletingFor(time.Minute)}, want{rule: "delete resources", again: 9 * time.Minute, sets: []string{deleting}}},
		{"what is left cannot be watched", []change{deletionResult(Deletion{Objects: 1, Unwatched: true})}, want{rule: "delete resources", again: UnwatchedInterval, sets: []string{deleting}}},
		{"trouble", []change{deletionResult(Deletion{Err: errors.New("forbidden")})}, want{rule: "delete resources", again: UnwatchedInterval, sets: []string{deleting}}},
		{"time is up", []change{deletingFor(10 * time.Minute)}, want{rule: "delete resources", act: ForceDeletion}},
		{"forced a moment ago", []change{deletingFor(10 * time.Minute), deletionResult(Deletion{Pods: 2})}, want{rule: "delete resources", again: UnwatchedInterval, sets: []string{deleting}}},
		{"all is gone", []change{nothingLeft, deletingFor(time.Second)}, want{rule: "delete resources", again: Immediately,
			sets: []string{"ResourcesDeployed=False/Resetting", deleted}}},
		{"pause", []change{withConditionsFalse(rd), unhealthy(80 * time.Second)}, want{rule: "pause", again: 10 * time.Second}},
		{"resume", []change{withConditionsFalse(rd), unhealthy(90 * time.Second), podsReadyLost(2 * time.Minute)}, want{rule: "resume", next: awv1beta2.PhaseResuming,
			again: Immediately, sets: []string{"ResourcesDeployed=True/Resuming", "Unhealthy=False/Resuming", "PodsReady=False/Resetting"}}},
		{"components were changed", []change{changed, withConditionsFalse(rd), unhealthy(90 * time.Second)}, want{rule: "components were changed",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/ComponentsChanged"}}},
	})
}

// [D20] Resuming clears Unhealthy, so that a second failure has its own grace period.
func TestASecondFailureHasItsOwnGracePeriod(t *testing.T) {
	d := Decide(whileResetting, newFacts(awv1beta2.PhaseResetting, withConditionsFalse(rd)))
	if c := meta.FindStatusCondition(d.Conditions, awv1beta2.ConditionUnhealthy); c == nil || c.Status != metav1.ConditionFalse {
		t.Fatalf("Unhealthy %+v", c)
	}
	if !d.Announce {
		t.Error("want the coming reset announced")
	}
	again := Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, pods(0, 1, 0, 1),
		condition(awv1beta2.ConditionUnhealthy, metav1.ConditionFalse, awv1beta2.ReasonResuming, time.Second)))
	if again.NextPhase != "" || again.RequeueAfter != time.Minute {
		t.Errorf("next %q after %s", again.NextPhase, again.RequeueAfter)
	}
}

func TestRulesWhileSuspending(t *testing.T) {
	over := []string{"QuotaReserved=False/Suspended", "ResourcesDeployed=False/Suspended"}
	runCases(t, awv1beta2.PhaseSuspending, whileSuspending, []ruleCase{
		{"delete, even when not suspended any more", nil, want{rule: "delete resources", act: DeleteComponents}},
		{"something is left", []change{suspend, deletionResult(Deletion{Objects: 1})}, want{rule: "delete resources", again: 10 * time.Minute, sets: []string{deleting}}},
		{"all is gone", []change{suspend, nothingLeft, podsReady(time.Minute), unhealthy(time.Minute)}, want{rule: "delete resources", next: awv1beta2.PhaseSuspended,
			again: Immediately, sets: append(over, "PodsReady=False/Suspended", "Unhealthy=False/Suspended")}},
		{"gone before", []change{suspend, withConditionsFalse(rd)}, want{rule: "suspended", next: awv1beta2.PhaseSuspended, again: Immediately, sets: over}},
		{"pods came back", []change{suspend, withConditionsFalse(rd), pods(1, 0, 0, 0)}, want{rule: "delete resources", act: DeleteComponents}},
	})
}

// [D1] [appwrapper-52] The time to live starts with the success and not with the run.
func TestRulesWhileSucceeded(t *testing.T) {
	ttl := withTerms(func(t *Terms) { t.SuccessTTL = 10 * time.Minute })
	runCases(t, awv1beta2.PhaseSucceeded, whileSucceeded, []ruleCase{
		{"stored by the original", []change{func(f *Facts) { f.CompletionTime = nil }}, want{rule: "set completion time", again: Immediately}},
		{"resources are deleted", []change{withConditionsFalse(rd)}, want{rule: "resources are deleted"}},
		{"cleaned up, still ready", []change{withConditionsFalse(rd), podsReady(time.Hour)}, want{rule: "resources are deleted"}},
		{"ran for an hour, ended a minute ago", []change{ttl, deployedFor(time.Hour), completed(time.Minute)}, want{rule: "wait for the time to live", again: 9 * time.Minute}},
		{"expired", []change{ttl, completed(10 * time.Minute)}, want{rule: "delete resources", act: DeleteComponents}},
		{"deletion continues when the time to live was raised", []change{deletingFor(time.Minute)}, want{rule: "delete resources", act: DeleteComponents}},
		{"suspended later", []change{suspend, completed(time.Minute), ttl}, want{rule: "wait for the time to live", again: 9 * time.Minute}},
		{"all is gone", []change{ttl, nothingLeft}, want{rule: "delete resources", sets: []string{"ResourcesDeployed=False/Succeeded"}}},
	})
	d := Decide(whileSucceeded, newFacts(awv1beta2.PhaseSucceeded, ttl, nothingLeft))
	if got := d.Conditions[0].Message; got != "Time to live after success of 10m0s expired" {
		t.Errorf("message %q, want %q", got, "Time to live after success of 10m0s expired")
	}
	d = Decide(whileSucceeded, newFacts(awv1beta2.PhaseSucceeded, func(f *Facts) { f.CompletionTime = nil }))
	if d.CompletionTime == nil || !d.CompletionTime.Equal(noon.Add(-10*time.Minute)) {
		t.Errorf("the end of a stored success is %v, want when the quota was given back", d.CompletionTime)
	}
}

// [D2] [D35] [appwrapper-53] The delay starts with the failure, and started deletion is not delayed again.
func TestRulesWhileFailed(t *testing.T) {
	delay := withTerms(func(t *Terms) { t.DeletionOnFailure = 10 * time.Minute })
	ended := []string{"ResourcesDeployed=False/Failed", "QuotaReserved=False/Failed"}
	runCases(t, awv1beta2.PhaseFailed, whileFailed, []ruleCase{
		{"stored by the original", []change{func(f *Facts) { f.CompletionTime = nil }}, want{rule: "set completion time", again: Immediately}},
		{"resources are deleted", []change{withConditionsFalse(rd, qr)}, want{rule: "resources are deleted"}},
		{"cleaned up, ready as the original left it", []change{withConditionsFalse(rd, qr), podsReady(time.Hour)}, want{rule: "resources are deleted", sets: []string{"PodsReady=False/Failed"}}},
		{"delayed", []change{delay, completed(4 * time.Minute)}, want{rule: "wait for the deletion grace period", again: 6 * time.Minute, sets: []string{"DeletingResources=False/DeletionPaused"}}},
		{"delayed, after an earlier clean-up", []change{delay, completed(4 * time.Minute), withConditionsFalse(awv1beta2.ConditionDeletingResources)},
			want{rule: "wait for the deletion grace period", again: 6 * time.Minute, sets: []string{"DeletingResources=False/DeletionPaused"}}},
		{"suspend ends the delay", []change{delay, completed(4 * time.Minute), suspend}, want{rule: "delete resources", act: DeleteComponents}},
		{"the delay is over", []change{delay, pausedFor(10 * time.Minute)}, want{rule: "delete resources", act: DeleteComponents}},
		{"deletion has begun", []change{delay, completed(time.Minute), deletingFor(time.Second), suspend}, want{rule: "delete resources", act: DeleteComponents}},
		{"deletion has begun and suspend is taken back", []change{delay, completed(time.Minute), deletingFor(time.Second)}, want{rule: "delete resources", act: DeleteComponents}},
		{"something is left", []change{deletionResult(Deletion{Objects: 1}), deletingFor(time.Minute)}, want{rule: "delete resources", again: 9 * time.Minute, sets: []string{deleting}}},
		{"all is gone", []change{nothingLeft, deletingFor(time.Minute)}, want{rule: "delete resources", sets: append(ended, deleted)}},
		{"the original ended between two patches", []change{withConditionsFalse(rd), pods(0, 1, 0, 0)}, want{rule: "delete resources", act: DeleteComponents}},
	})
	for _, forced := range []bool{false, true} {
		d := Decide(whileFailed, newFacts(awv1beta2.PhaseFailed, delay, nothingLeft, func(f *Facts) { f.Suspend = forced }))
		want := map[bool]string{false: "Resources deleted for failed AppWrapper", true: "Kueue forced resource deletion by suspending AppWrapper"}[forced]
		if got := d.Conditions[0].Message; got != want {
			t.Errorf("suspend %t: message %q, want %q", forced, got, want)
		}
	}
	d := Decide(whileFailed, newFacts(awv1beta2.PhaseFailed, delay, completed(time.Minute)))
	if got := d.Conditions[0].Message; got != "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration has value 10m0s" {
		t.Errorf("message %q, want %q", got, "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration has value 10m0s")
	}
}

func TestCompletionTimeOfLegacyFailure(t *testing.T) {
	forget := func(f *Facts) { f.CompletionTime = nil }
	if at := newFacts(awv1beta2.PhaseFailed, forget, pausedFor(3*time.Minute)).completionTime(); !at.Equal(noon.Add(-3 * time.Minute)) {
		t.Errorf("paused three minutes ago: %s", at)
	}
	if at := newFacts(awv1beta2.PhaseFailed, forget).completionTime(); !at.Equal(noon) {
		t.Errorf("nothing to go by: %s", at)
	}
}

func TestRulesWhileTerminating(t *testing.T) {
	runCases(t, awv1beta2.PhaseRunning, WhileTerminating, []ruleCase{
		{"delete", nil, want{rule: "delete resources", act: DeleteComponents}},
		{"something is left", []change{deletionResult(Deletion{Objects: 1})}, want{rule: "delete resources", next: awv1beta2.PhaseTerminating, again: 10 * time.Minute, sets: []string{deleting}}},
		{"still", []change{func(f *Facts) { f.Phase = awv1beta2.PhaseTerminating }, deletionResult(Deletion{Pods: 1}), deletingFor(time.Minute)},
			want{rule: "delete resources", again: 9 * time.Minute, sets: []string{deleting}}},
		{"all is gone", []change{nothingLeft, deletingFor(time.Minute)}, want{rule: "delete resources", again: Immediately,
			sets: []string{"ResourcesDeployed=False/Terminating", "QuotaReserved=False/Terminating", deleted}}},
		{"quota is left", []change{withConditionsFalse(rd)}, want{rule: "release quota", again: Immediately, sets: []string{"QuotaReserved=False/Terminating"}}},
		{"over", []change{withConditionsFalse(rd, qr)}, want{rule: "remove finalizer"}},
	})
	if d := Decide(WhileTerminating, newFacts(awv1beta2.PhaseRunning, withConditionsFalse(rd, qr))); !d.RemoveFinalizer {
		t.Error("want the finalizer removed")
	}
}

func TestDecideIgnoresUnknownPhase(t *testing.T) {
	compare(t, Decide(ByPhase["Paused"], newFacts("Paused")), want{rule: "unknown phase"})
}
