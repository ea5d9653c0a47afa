package rules

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func TestRulesWhileNewAndSuspended(t *testing.T) {
	startCases := []ruleCase{
		{"not suspended", nil, want{rule: "start", next: awv1beta2.PhaseResuming, requeueAfter: Immediately,
			conditions: []string{"QuotaReserved=True/Resuming", "ResourcesDeployed=True/Resuming", "PodsReady=False/Resuming", "Unhealthy=False/Resuming"}}},
		{"components changed", []change{withChangedComponents}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"pod sets unknown", []change{withChangedComponents, func(f *Facts) { f.PodSetsUnknown = errors.New("no template") }}, want{rule: "pod sets are unknown",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/CreateFailed"},
			unhealthyMessage: "no template; correct the template in a new AppWrapper"}},
		{"not reviewed by a webhook", []change{func(f *Facts) { f.Unreviewed = true }}, want{rule: "not reviewed",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/NotReviewed"}}},
	}
	runCases(t, awv1beta2.PhaseEmpty, whileNew, append([]ruleCase{
		{"first reconcile of a suspended AppWrapper", []change{withSuspend}, want{rule: "initialize", next: awv1beta2.PhaseSuspended, requeueAfter: Immediately}},
	}, startCases...))
	runCases(t, awv1beta2.PhaseSuspended, whileSuspended, append([]ruleCase{
		{"suspended", []change{withSuspend}, want{rule: "stay suspended"}},
		{"suspended, components changed", []change{withSuspend, withChangedComponents}, want{rule: "stay suspended"}},
	}, startCases...))
	for _, phase := range []awv1beta2.AppWrapperPhase{awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended} {
		if d := Decide(ByPhase[phase], newFacts(phase)); !d.Announce {
			t.Errorf("phase %q: want the components announced", phase)
		}
	}
}

func TestRulesWhileResuming(t *testing.T) {
	creationErr := errors.New("no route to host")
	message := "error creating components: no route to host"
	runCases(t, awv1beta2.PhaseResuming, whileResuming, []ruleCase{
		{"suspended", []change{withSuspend, withStage(NotCreated)}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, requeueAfter: Immediately}},
		{"component not announced", []change{withStage(NotCreated)}, want{rule: "announce components", requeueAfter: Immediately}},
		{"components changed", []change{withChangedComponents}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"component deployed", []change{withStage(Deployed)}, want{rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately}},
		{"component announced", nil, want{rule: "create", action: CreateComponents}},
		{"component rejected earlier", []change{withStage(Errored)}, want{rule: "create", action: CreateComponents}},
		{"component created", []change{creationResult(nil, false)}, want{rule: "wait for the first pods", requeueAfter: time.Second}},
		{"component created, no pods expected", []change{creationResult(nil, false), func(f *Facts) { f.Components[0].Replicas, f.Components[0].MinReady = 0, 0 }}, want{
			rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately, conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"component deployed 400ms ago", []change{withStage(Deployed), deployedFor(400 * time.Millisecond)}, want{rule: "wait for the first pods", requeueAfter: time.Second}},
		{"component deployed 1s ago", []change{withStage(Deployed), deployedFor(time.Second)}, want{rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately}},
		{"component deployed after CreateFailed", []change{withStage(Deployed), condition(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonCreateFailed, time.Second)}, want{
			rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately, conditions: []string{"PodsReady=False/Resuming"}}},
		{"pod failed in the first second", []change{withStage(Deployed), deployedFor(0), pods(0, 2, 0, 1)}, want{rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately}},
		{"pods running in the first second", []change{withStage(Deployed), deployedFor(0), pods(0, 2, 0, 0)}, want{rule: "run", next: awv1beta2.PhaseRunning, requeueAfter: Immediately,
			conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"terminal error", []change{creationResult(creationErr, true)}, want{rule: "creation failed permanently", next: awv1beta2.PhaseFailed, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/CreateFailed"}, unhealthyMessage: message}},
		{"error after 1s", []change{creationResult(creationErr, false), deployedFor(time.Second)},
			want{rule: "retry creation", requeueAfter: time.Second, conditions: []string{"PodsReady=False/CreateFailed"}}},
		{"error after 20s", []change{creationResult(creationErr, false), deployedFor(20 * time.Second)}, want{rule: "retry creation", requeueAfter: 10 * time.Second,
			conditions: []string{"PodsReady=False/CreateFailed"}}},
		{"error shortly before the admission deadline", []change{creationResult(creationErr, false), deployedFor(59500 * time.Millisecond)},
			want{rule: "retry creation", requeueAfter: 500 * time.Millisecond, conditions: []string{"PodsReady=False/CreateFailed"}}},
		{"error at the admission deadline", []change{creationResult(creationErr, false), deployedFor(time.Minute)}, want{rule: "creation timed out",
			next: awv1beta2.PhaseResetting, retry: 1, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/CreateFailed"}, unhealthyMessage: message}},
		{"error at the admission deadline, no retry left", []change{creationResult(creationErr, false), deployedFor(time.Minute), withRetries(3)}, want{rule: "creation timed out",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/CreateFailed"}}},
	})
}
