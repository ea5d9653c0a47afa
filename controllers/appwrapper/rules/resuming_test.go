package rules

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func TestRulesWhileNewAndSuspended(t *testing.T) {
	starts := []ruleCase{
		{"unsuspended", nil, want{rule: "start", next: awv1beta2.PhaseResuming, again: Immediately,
			sets: []string{"QuotaReserved=True/Resuming", "ResourcesDeployed=True/Resuming", "PodsReady=False/Resuming", "Unhealthy=False/Resuming"}}},
		{"components were added", []change{changed}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, again: Immediately,
			sets: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"stored while no webhook was there", []change{func(f *Facts) { f.Unreviewed = true }}, want{rule: "not reviewed",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/NotReviewed"}}},
	}
	runCases(t, awv1beta2.PhaseEmpty, whileNew, append([]ruleCase{
		{"first reconcile of a suspended AppWrapper", []change{suspend}, want{rule: "initialize", next: awv1beta2.PhaseSuspended, again: Immediately}},
	}, starts...))
	runCases(t, awv1beta2.PhaseSuspended, whileSuspended, append([]ruleCase{
		{"suspended", []change{suspend}, want{rule: "stay suspended"}},
		{"the same, but suspended", []change{suspend, changed}, want{rule: "stay suspended"}},
	}, starts...))
	for _, phase := range []awv1beta2.AppWrapperPhase{awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended} {
		if d := Decide(ByPhase[phase], newFacts(phase)); !d.Announce {
			t.Errorf("phase %q: what will be created is not announced", phase)
		}
	}
}

func TestRulesWhileResuming(t *testing.T) {
	broken := errors.New("no route to host")
	failed := "error creating components: no route to host"
	runCases(t, awv1beta2.PhaseResuming, whileResuming, []ruleCase{
		{"suspend wins", []change{suspend, staged(NotCreated)}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, again: Immediately}},
		{"stored by the original, nothing announced", []change{staged(NotCreated)}, want{rule: "announce components", again: Immediately}},
		{"components were removed", []change{changed}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, again: Immediately,
			sets: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"all there", []change{staged(Deployed)}, want{rule: "run", next: awv1beta2.PhaseRunning, again: Immediately}},
		{"announced", nil, want{rule: "create", act: CreateComponents}},
		{"refused before", []change{staged(Errored)}, want{rule: "create", act: CreateComponents}},
		{"created", []change{creationResult(nil, false)}, want{rule: "wait for the first pods", again: time.Second}},
		{"created, and needs no pods", []change{creationResult(nil, false), func(f *Facts) { f.Components[0].Replicas, f.Components[0].MinReady = 0, 0 }}, want{
			rule: "run", next: awv1beta2.PhaseRunning, again: Immediately, sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"created a moment ago", []change{staged(Deployed), deployedFor(400 * time.Millisecond)}, want{rule: "wait for the first pods", again: time.Second}},
		{"created a second ago", []change{staged(Deployed), deployedFor(time.Second)}, want{rule: "run", next: awv1beta2.PhaseRunning, again: Immediately}},
		{"created at last", []change{staged(Deployed), condition(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonCreateFailed, time.Second)}, want{
			rule: "run", next: awv1beta2.PhaseRunning, again: Immediately, sets: []string{"PodsReady=False/Resuming"}}},
		{"failed in the first second", []change{staged(Deployed), deployedFor(0), pods(0, 2, 0, 1)}, want{rule: "run", next: awv1beta2.PhaseRunning, again: Immediately}},
		{"ready in the first second", []change{staged(Deployed), deployedFor(0), pods(0, 2, 0, 0)}, want{rule: "run", next: awv1beta2.PhaseRunning, again: Immediately,
			sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"fatal", []change{creationResult(broken, true)}, want{rule: "creation failed permanently", next: awv1beta2.PhaseFailed, again: Immediately,
			sets: []string{"Unhealthy=True/CreateFailed"}, unhealthy: failed}},
		{"at first again after a second", []change{creationResult(broken, false), deployedFor(time.Second)},
			want{rule: "retry creation", again: time.Second, sets: []string{"PodsReady=False/CreateFailed"}}},
		{"later less often", []change{creationResult(broken, false), deployedFor(20 * time.Second)}, want{rule: "retry creation", again: 10 * time.Second,
			sets: []string{"PodsReady=False/CreateFailed"}}},
		{"but at the deadline", []change{creationResult(broken, false), deployedFor(59500 * time.Millisecond)},
			want{rule: "retry creation", again: 500 * time.Millisecond, sets: []string{"PodsReady=False/CreateFailed"}}},
		{"too long, tried again", []change{creationResult(broken, false), deployedFor(time.Minute)}, want{rule: "creation timed out",
			next: awv1beta2.PhaseResetting, retry: 1, again: Immediately, sets: []string{"Unhealthy=True/CreateFailed"}, unhealthy: failed}},
		{"too long, retries used up", []change{creationResult(broken, false), deployedFor(time.Minute), retried(3)}, want{rule: "creation timed out",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/CreateFailed"}}},
	})
}
