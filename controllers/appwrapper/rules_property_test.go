package appwrapper

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// drawFacts makes any facts, also such as cannot come about.
func drawFacts(t *rapid.T) *facts {
	number := rapid.IntRange(0, 3)
	yes := rapid.Bool()
	period := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour})
	f := &facts{
		now: noon, suspend: yes.Draw(t, "suspend"), retries: int32(number.Draw(t, "retries")),
		phase: rapid.SampledFrom([]awv1beta2.AppWrapperPhase{awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended, awv1beta2.PhaseResuming, awv1beta2.PhaseRunning,
			awv1beta2.PhaseResetting, awv1beta2.PhaseSuspending, awv1beta2.PhaseSucceeded, awv1beta2.PhaseFailed, awv1beta2.PhaseTerminating}).Draw(t, "phase"),
		terms: Terms{AdmissionGrace: period.Draw(t, "admission"), WarmupGrace: period.Draw(t, "warmup"), FailureGrace: period.Draw(t, "failure"),
			RetryPause: period.Draw(t, "pause"), ForcefulDeletion: period.Draw(t, "forceful"), DeletionOnFailure: period.Draw(t, "delay"),
			SuccessTTL: period.Draw(t, "ttl"), RetryLimit: int32(number.Draw(t, "limit"))},
	}
	for _, kind := range []string{rd, qr, awv1beta2.ConditionPodsReady, awv1beta2.ConditionUnhealthy, awv1beta2.ConditionDeletingResources} {
		status := rapid.SampledFrom([]metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse}).Draw(t, kind)
		reason := rapid.SampledFrom([]string{awv1beta2.ReasonResuming, awv1beta2.ReasonInsufficientPods, awv1beta2.ReasonDeletionPaused}).Draw(t, kind+" reason")
		if status != "" {
			condition(kind, status, reason, period.Draw(t, kind+" since"))(f)
		}
	}
	if yes.Draw(t, "end known") {
		completed(period.Draw(t, "completed"))(f)
	}
	for range number.Draw(t, "components") {
		f.components = append(f.components, componentFact{title: "Job j", stage: stage(number.Draw(t, "stage")), replicas: number.Draw(t, "replicas"),
			judges: yes.Draw(t, "judges"), missing: yes.Draw(t, "missing"), outcome: outcome(number.Draw(t, "outcome")), completed: yes.Draw(t, "done")})
	}
	pods(number.Draw(t, "pending"), number.Draw(t, "running"), number.Draw(t, "succeeded"), number.Draw(t, "failed"))(f)
	others := number.Draw(t, "active pods of components that are done")
	f.pods.all, f.pods.active = f.pods.all+others, f.pods.active+others
	f.changed, f.unreviewed = yes.Draw(t, "changed"), yes.Draw(t, "unreviewed")
	f.pods.terminal = yes.Draw(t, "terminal")
	if yes.Draw(t, "bad node") {
		onBadNode(f)
	}
	return f
}

// settle answers a question of the rules in any way, and asks them again.
func settle(t *rapid.T, list []rule, f *facts) decision {
	d := decide(list, f)
	trouble := func(name string) error {
		if rapid.Bool().Draw(t, name) {
			return errors.New("trouble")
		}
		return nil
	}
	switch d.act {
	case createComponents:
		f.created = &creation{err: trouble("creation"), fatal: rapid.Bool().Draw(t, "fatal")}
	case deleteComponents, forceDeletion:
		left := rapid.IntRange(0, 1)
		f.deleted = &deletion{objects: left.Draw(t, "left"), pods: f.pods.all, blind: rapid.Bool().Draw(t, "blind"), trouble: trouble("deletion")}
	case nothing:
		return d
	}
	d = decide(list, f)
	if d.act != nothing {
		t.Fatalf("the rule %q asks again for what was done", d.rule)
	}
	return d
}

// Whatever is the case, exactly one decision follows, and none that loses quota, retries for ever or wakes the dead.
func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		list, dying := rules[f.phase], rapid.Bool().Draw(t, "deleted")
		if dying {
			list = whileTerminating
		}
		d := settle(t, list, f)
		if d.rule == "" || d.rule == "unknown phase" {
			t.Fatalf("no rule for phase %q", f.phase)
		}
		quota := meta.FindStatusCondition(d.conditions, qr)
		if quota != nil && quota.Status == metav1.ConditionFalse && f.pods.active > 0 {
			t.Fatalf("the rule %q gives back the quota of %d pods", d.rule, f.pods.active)
		}
		if quota != nil && quota.Status == metav1.ConditionFalse && (dying || f.phase != awv1beta2.PhaseRunning) && f.pods.all > 0 {
			t.Fatalf("the rule %q gives back the quota before %d pods are cleared away", d.rule, f.pods.all)
		}
		if d.next != "" && !dying && (f.phase == awv1beta2.PhaseSucceeded || f.phase == awv1beta2.PhaseFailed) {
			t.Fatalf("the rule %q leads from %s to %s", d.rule, f.phase, d.next)
		}
		if f.retries <= f.terms.RetryLimit && f.retries+d.retry > f.terms.RetryLimit {
			t.Fatalf("the rule %q makes it %d retries of %d", d.rule, f.retries+d.retry, f.terms.RetryLimit)
		}
		if d.next != "" && !dying && d.again != immediately {
			t.Fatalf("the rule %q goes to %s and does not go on", d.rule, d.next)
		}
		if d.again < 0 {
			t.Fatalf("the rule %q waits for %s", d.rule, d.again)
		}
		if d.release && (f.is(rd) || f.is(qr) || f.pods.all > 0) {
			t.Fatalf("the rule %q lets go of %d pods", d.rule, f.pods.all)
		}
	})
}

// [D2] Once deletion has begun in a terminal phase no decision pauses it.
func TestDeletionThatHasBegunIsNeverPaused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		f.phase = rapid.SampledFrom([]awv1beta2.AppWrapperPhase{awv1beta2.PhaseFailed, awv1beta2.PhaseSucceeded}).Draw(t, "terminal phase")
		deletingFor(time.Second)(f)
		completed(time.Second)(f)
		d := settle(t, rules[f.phase], f)
		if c := meta.FindStatusCondition(d.conditions, awv1beta2.ConditionDeletingResources); c != nil && c.Reason == awv1beta2.ReasonDeletionPaused {
			t.Fatalf("the rule %q pauses", d.rule)
		}
	})
}
