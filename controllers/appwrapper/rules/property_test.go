package rules

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// drawFacts draws random facts, including impossible ones.
func drawFacts(t *rapid.T) *Facts {
	number := rapid.IntRange(0, 3)
	boolean := rapid.Bool()
	period := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour})
	f := &Facts{
		Now: noon, Suspend: boolean.Draw(t, "suspend"), Retries: int32(number.Draw(t, "retries")),
		Phase: rapid.SampledFrom([]awv1beta2.AppWrapperPhase{awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended, awv1beta2.PhaseResuming, awv1beta2.PhaseRunning,
			awv1beta2.PhaseResetting, awv1beta2.PhaseSuspending, awv1beta2.PhaseSucceeded, awv1beta2.PhaseFailed, awv1beta2.PhaseTerminating}).Draw(t, "phase"),
		Terms: Terms{AdmissionGrace: period.Draw(t, "admission"), WarmupGrace: period.Draw(t, "warmup"), FailureGrace: period.Draw(t, "failure"),
			RetryPause: period.Draw(t, "pause"), ForcefulDeletion: period.Draw(t, "forceful"), DeletionOnFailure: period.Draw(t, "delay"),
			SuccessTTL: period.Draw(t, "ttl"), RetryLimit: int32(number.Draw(t, "limit"))},
	}
	for _, conditionType := range []string{resourcesDeployed, quotaReserved, awv1beta2.ConditionPodsReady, awv1beta2.ConditionUnhealthy, awv1beta2.ConditionDeletingResources} {
		status := rapid.SampledFrom([]metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse}).Draw(t, conditionType)
		reason := rapid.SampledFrom([]string{awv1beta2.ReasonResuming, awv1beta2.ReasonInsufficientPods, awv1beta2.ReasonDeletionPaused}).Draw(t, conditionType+" reason")
		if status != "" {
			condition(conditionType, status, reason, period.Draw(t, conditionType+" since"))(f)
		}
	}
	if boolean.Draw(t, "has completion time") {
		completed(period.Draw(t, "completed"))(f)
	}
	for range number.Draw(t, "components") {
		f.Components = append(f.Components, ComponentFact{Title: "Job j", Stage: Stage(number.Draw(t, "stage")), Replicas: number.Draw(t, "replicas"),
			ReportsCompletion: boolean.Draw(t, "reports completion"), Missing: boolean.Draw(t, "missing"), Outcome: Outcome(number.Draw(t, "outcome")), Completed: boolean.Draw(t, "done")})
	}
	pods(number.Draw(t, "pending"), number.Draw(t, "running"), number.Draw(t, "succeeded"), number.Draw(t, "failed"))(f)
	donePods := number.Draw(t, "active pods of components that are done")
	f.Pods.All, f.Pods.Active = f.Pods.All+donePods, f.Pods.Active+donePods
	f.ComponentsChanged, f.Unreviewed = boolean.Draw(t, "changed"), boolean.Draw(t, "unreviewed")
	f.Pods.Terminal = boolean.Draw(t, "terminal")
	if boolean.Draw(t, "on unhealthy node") {
		onUnhealthyNodes(f)
	}
	return f
}

// decideAfterAction returns the decision after a random outcome of the requested action.
func decideAfterAction(t *rapid.T, list []Rule, f *Facts) Decision {
	d := Decide(list, f)
	randomError := func(name string) error {
		if rapid.Bool().Draw(t, name) {
			return errors.New("failed")
		}
		return nil
	}
	switch d.Action {
	case CreateComponents:
		f.Created = &Creation{Err: randomError("creation"), Terminal: rapid.Bool().Draw(t, "terminal")}
	case DeleteComponents, ForceDeletion:
		remaining := rapid.IntRange(0, 1)
		f.Deleted = &Deletion{Objects: remaining.Draw(t, "remaining"), Pods: f.Pods.All, Unwatched: rapid.Bool().Draw(t, "unwatched"), Err: randomError("deletion")}
	case Nothing:
		return d
	}
	d = Decide(list, f)
	if d.Action != Nothing {
		t.Fatalf("rule %q requests another action after the outcome of the first", d.Rule)
	}
	return d
}

// For any facts, the decision releases no quota in use, does not exceed the retry limit, and does not leave a terminal phase.
func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		list, terminating := ByPhase[f.Phase], rapid.Bool().Draw(t, "deleted")
		if terminating {
			list = WhileTerminating
		}
		d := decideAfterAction(t, list, f)
		if d.Rule == "" || d.Rule == "unknown phase" {
			t.Fatalf("no rule for phase %q", f.Phase)
		}
		quota := meta.FindStatusCondition(d.Conditions, quotaReserved)
		if quota != nil && quota.Status == metav1.ConditionFalse && f.Pods.Active > 0 {
			t.Fatalf("rule %q releases the quota of %d active pods", d.Rule, f.Pods.Active)
		}
		if quota != nil && quota.Status == metav1.ConditionFalse && (terminating || f.Phase != awv1beta2.PhaseRunning) && f.Pods.All > 0 {
			t.Fatalf("rule %q releases the quota before %d pods are deleted", d.Rule, f.Pods.All)
		}
		if d.NextPhase != "" && !terminating && (f.Phase == awv1beta2.PhaseSucceeded || f.Phase == awv1beta2.PhaseFailed) {
			t.Fatalf("rule %q changes the terminal phase %s to %s", d.Rule, f.Phase, d.NextPhase)
		}
		if f.Retries <= f.Terms.RetryLimit && f.Retries+d.Retry > f.Terms.RetryLimit {
			t.Fatalf("rule %q increases the retries to %d, want at most %d", d.Rule, f.Retries+d.Retry, f.Terms.RetryLimit)
		}
		if d.NextPhase != "" && !terminating && d.RequeueAfter != Immediately {
			t.Fatalf("rule %q enters phase %s without an immediate requeue", d.Rule, d.NextPhase)
		}
		if d.RequeueAfter < 0 {
			t.Fatalf("rule %q requeues after %s", d.Rule, d.RequeueAfter)
		}
		if d.RemoveFinalizer && (f.isTrue(resourcesDeployed) || f.isTrue(quotaReserved) || f.Pods.All > 0) {
			t.Fatalf("rule %q removes the finalizer while resources, quota or %d pods exist", d.Rule, f.Pods.All)
		}
	})
}

// [D2] In a terminal phase, a started deletion is not delayed.
func TestStartedDeletionIsNotDelayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		f.Phase = rapid.SampledFrom([]awv1beta2.AppWrapperPhase{awv1beta2.PhaseFailed, awv1beta2.PhaseSucceeded}).Draw(t, "terminal phase")
		deletingFor(time.Second)(f)
		completed(time.Second)(f)
		d := decideAfterAction(t, ByPhase[f.Phase], f)
		if c := meta.FindStatusCondition(d.Conditions, awv1beta2.ConditionDeletingResources); c != nil && c.Reason == awv1beta2.ReasonDeletionPaused {
			t.Fatalf("rule %q delays the deletion", d.Rule)
		}
	})
}
