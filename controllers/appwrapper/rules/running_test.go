package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func changed(f *Facts) { f.ComponentsChanged = true }

func missing(f *Facts) { f.Components[0].Missing = true }

func terminalCode(f *Facts) { f.Pods.Terminal = true }

func onBadNode(f *Facts) { f.Pods.NoExecute = []string{"n1", "n2"} }

func withSecondComponent(c ComponentFact) change {
	return func(f *Facts) { f.Components = append(f.Components, c) }
}

func podsReady(ago time.Duration) change {
	return condition(awv1beta2.ConditionPodsReady, metav1.ConditionTrue, awv1beta2.ReasonSufficientPodsReady, ago)
}

func podsReadyLost(ago time.Duration) change {
	return condition(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonInsufficientPods, ago)
}

func unhealthy(ago time.Duration) change {
	return condition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFoundFailedPods, ago)
}

const done2 = "2 pods succeeded and no running, pending, or failed pods"

// [appwrapper-4] [appwrapper-5] [appwrapper-6] [appwrapper-9] [appwrapper-55]
func TestRulesWhileRunning(t *testing.T) {
	succeeds := []string{"QuotaReserved=False/Succeeded", "ResourcesDeployed=True/Succeeded", "PodsReady=True/SufficientPodsReady"}
	runCases(t, awv1beta2.PhaseRunning, whileRunning, []ruleCase{
		{"suspend wins", []change{suspend, missing}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, again: Immediately}},
		{"missing is never retried", []change{missing}, want{rule: "a component is missing", next: awv1beta2.PhaseFailed, again: Immediately,
			sets: []string{"Unhealthy=True/MissingComponent"}, unhealthy: "Only found 0 deployed components, but was expecting 1"}},
		{"missing, but done before", []change{missing, withOutcome(Succeeded)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: Immediately, sets: succeeds}},
		{"failed component", []change{withOutcome(Failed)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting, retry: 1, again: Immediately,
			sets: []string{"Unhealthy=True/FailedComponent"}, unhealthy: "Found 1 failed components"}},
		{"failed component, terminal code", []change{withOutcome(Failed), terminalCode}, want{rule: "a component failed", next: awv1beta2.PhaseFailed,
			again: Immediately, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, last retry", []change{withOutcome(Failed), retried(2)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting,
			retry: 1, again: Immediately, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, no retry left", []change{withOutcome(Failed), retried(3), podsReady(time.Minute)}, want{rule: "a component failed",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/FailedComponent", "PodsReady=False/Failed"}}},
		{"all pods succeeded", []change{pods(0, 0, 2, 0), podsReady(time.Minute)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded,
			again: Immediately, sets: succeeds}},
		{"done, and pods run on", []change{withOutcome(Succeeded), func(f *Facts) { f.Pods.All, f.Pods.Active = 2, 2 }, unhealthy(time.Minute)},
			want{rule: "wait for pods of succeeded components", sets: []string{"QuotaReserved=True/PodsRunning", "Unhealthy=False/FoundNoFailedPods"}}},
		{"all pods succeeded, one of an earlier workload runs", []change{pods(0, 0, 2, 0), func(f *Facts) { f.Pods.Active = 1 }},
			want{rule: "wait for pods of succeeded components", sets: []string{"QuotaReserved=True/PodsRunning"}}},
		{"components were removed", []change{changed, missing}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, again: Immediately,
			sets: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"a wave of pods succeeded, the Job continues", []change{withOutcome(inProgress), pods(0, 0, 2, 0)}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"reported success, pods are gone", []change{withOutcome(Succeeded)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: Immediately, sets: succeeds}},
		{"one is done, another runs", []change{withOutcome(Succeeded), withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one is done and away, another runs", []change{missing, func(f *Facts) { f.Components[0].Completed = true },
			withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one is done, the pods of another succeeded", []change{withOutcome(Succeeded), withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 0, 1, 0)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: Immediately, sets: succeeds}},
		{"failed pod, first seen", []change{pods(0, 1, 0, 1)}, want{rule: "wait for the failure grace period", again: time.Minute,
			sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, half a minute ago", []change{pods(0, 1, 0, 1), unhealthy(30 * time.Second)}, want{rule: "wait for the failure grace period",
			again: 30 * time.Second, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, for a minute", []change{pods(0, 1, 0, 1), unhealthy(time.Minute)}, want{rule: "failure grace period expired",
			next: awv1beta2.PhaseResetting, retry: 1, again: Immediately, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod without grace and retries", []change{pods(0, 1, 0, 1), withTerms(func(t *Terms) { t.FailureGrace, t.RetryLimit = 0, 0 })},
			want{rule: "failure grace period expired", next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"a state that may pass", []change{func(f *Facts) { f.Components[0].Outcome = Failing }, pods(0, 2, 0, 0)},
			want{rule: "wait for the failure grace period", again: time.Minute, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"bad nodes do not count", []change{pods(0, 2, 0, 0), onBadNode, retried(2), terminalCode}, want{rule: "pods on unhealthy nodes",
			next: awv1beta2.PhaseResetting, again: Immediately, sets: []string{"Unhealthy=True/AutopilotNoExecute"},
			unhealthy: "Workload contains pods using NoExecute resources on Nodes: n1, n2"}},
		{"bad nodes, no retry left", []change{pods(0, 2, 0, 0), onBadNode, retried(3)}, want{rule: "pods on unhealthy nodes",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/AutopilotNoExecute"}}},
		{"ready", []change{pods(0, 1, 1, 0), unhealthy(time.Second)}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady", "Unhealthy=False/FoundNoFailedPods"}}},
		{"a workload without pods continues", []change{func(f *Facts) { f.Components[0].Replicas, f.Components[0].MinReady = 0, 0 }}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one pending, warming up", []change{pods(1, 1, 0, 0), deployedFor(4 * time.Minute)}, want{rule: "wait for pods", again: time.Minute}},
		{"pods do not appear", []change{pods(1, 0, 0, 0), deployedFor(20 * time.Second)}, want{rule: "wait for pods", again: 40 * time.Second}},
		{"pods did not appear", []change{pods(1, 0, 0, 0), deployedFor(time.Minute)}, want{rule: "pods not ready in time",
			next: awv1beta2.PhaseResetting, retry: 1, again: Immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"},
			unhealthy: "1 pods pending; 0 pods running; 0 pods succeeded"}},
		{"created long after it was announced", []change{pods(1, 1, 0, 0), func(f *Facts) { f.Components[0].Since = f.Now.Add(-time.Minute) }},
			want{rule: "wait for pods", again: 4 * time.Minute}},
		{"warmed up for too long", []change{pods(1, 1, 0, 0), deployedFor(5 * time.Minute), retried(3)}, want{rule: "pods not ready in time",
			next: awv1beta2.PhaseFailed, again: Immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"}}},
	})
}

// [D3] [appwrapper-54] Unready pods have the failure grace period, counted from the first unready state.
func TestUnreadyPodsHaveFailureGracePeriod(t *testing.T) {
	for _, tc := range []ruleCase{
		{"first seen", []change{pods(1, 1, 0, 0), podsReady(9 * time.Minute)},
			want{rule: "wait for pods", again: time.Minute, sets: []string{"PodsReady=False/InsufficientPodsReady"}}},
		{"half way", []change{pods(1, 1, 0, 0), podsReadyLost(40 * time.Second)}, want{rule: "wait for pods", again: 20 * time.Second}},
		{"over", []change{pods(1, 1, 0, 0), podsReadyLost(time.Minute)}, want{rule: "pods not ready in time", next: awv1beta2.PhaseResetting,
			retry: 1, again: Immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"}}},
		{"not before the end of the warm-up", []change{pods(1, 1, 0, 0), deployedFor(2 * time.Minute), podsReadyLost(90 * time.Second)},
			want{rule: "wait for pods", again: 3 * time.Minute}},
		{"without a grace period", []change{pods(1, 1, 0, 0), podsReady(9 * time.Minute), withTerms(func(t *Terms) { t.FailureGrace = 0 })},
			want{rule: "pods not ready in time", next: awv1beta2.PhaseResetting, retry: 1, again: Immediately,
				sets: []string{"Unhealthy=True/InsufficientPodsReady", "PodsReady=False/InsufficientPodsReady"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			compare(t, Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, tc.facts...)), tc.want)
		})
	}
}

func TestCompletionIsRecorded(t *testing.T) {
	d := Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, withOutcome(Succeeded)))
	if c := meta.FindStatusCondition(d.Conditions, awv1beta2.ConditionQuotaReserved); c.Message != done2 {
		t.Errorf("message %q", c.Message)
	}
	if d.CompletionTime == nil || !d.CompletionTime.Equal(noon) {
		t.Errorf("completed %v", d.CompletionTime)
	}
	d = Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, withOutcome(Failed), func(f *Facts) {
		f.Components[0].Message, f.Pods.Report = "BackoffLimitExceeded", strings.Repeat("pod p: exit code 3; ", 100)
	}))
	if d.Failure == nil || !strings.HasPrefix(d.Failure.Message, "Found 1 failed components; Deployment d (BackoffLimitExceeded); pod p: exit code 3") ||
		len(d.Failure.Message) > maxFailureMessage || !d.Failure.Time.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("failure %+v", d.Failure)
	}
	if d.CompletionTime != nil {
		t.Error("a reset set the completion time")
	}
}
