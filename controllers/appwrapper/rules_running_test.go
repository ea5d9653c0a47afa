package appwrapper

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func changed(f *facts) { f.changed = true }

func missing(f *facts) { f.components[0].missing = true }

func terminalCode(f *facts) { f.pods.terminal = true }

func onBadNode(f *facts) { f.pods.noExecute = []string{"n1", "n2"} }

func another(c componentFact) change {
	return func(f *facts) { f.components = append(f.components, c) }
}

func ready(ago time.Duration) change {
	return condition(awv1beta2.ConditionPodsReady, metav1.ConditionTrue, awv1beta2.ReasonSufficientPodsReady, ago)
}

func dipped(ago time.Duration) change {
	return condition(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonInsufficientPods, ago)
}

func unwell(ago time.Duration) change {
	return condition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFoundFailedPods, ago)
}

const done2 = "2 pods succeeded and no running, pending, or failed pods"

// [appwrapper-4] [appwrapper-5] [appwrapper-6] [appwrapper-9] [appwrapper-55]
func TestRulesWhileRunning(t *testing.T) {
	succeeds := []string{"QuotaReserved=False/Succeeded", "ResourcesDeployed=True/Succeeded", "PodsReady=True/SufficientPodsReady"}
	runCases(t, awv1beta2.PhaseRunning, whileRunning, []ruleCase{
		{"suspend wins", []change{suspend, missing}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, again: immediately}},
		{"missing is never retried", []change{missing}, want{rule: "a component is missing", next: awv1beta2.PhaseFailed, again: immediately,
			sets: []string{"Unhealthy=True/MissingComponent"}, unhealthy: "Only found 0 deployed components, but was expecting 1"}},
		{"missing, but done before", []change{missing, judging(succeeded)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: immediately, sets: succeeds}},
		{"failed component", []change{judging(failed)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting, retry: 1, again: immediately,
			sets: []string{"Unhealthy=True/FailedComponent"}, unhealthy: "Found 1 failed components"}},
		{"failed component, terminal code", []change{judging(failed), terminalCode}, want{rule: "a component failed", next: awv1beta2.PhaseFailed,
			again: immediately, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, last retry", []change{judging(failed), retried(2)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting,
			retry: 1, again: immediately, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, no retry left", []change{judging(failed), retried(3), ready(time.Minute)}, want{rule: "a component failed",
			next: awv1beta2.PhaseFailed, again: immediately, sets: []string{"Unhealthy=True/FailedComponent", "PodsReady=False/Failed"}}},
		{"all pods succeeded", []change{pods(0, 0, 2, 0), ready(time.Minute)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded,
			again: immediately, sets: succeeds}},
		{"done, and pods run on", []change{judging(succeeded), func(f *facts) { f.pods.all, f.pods.active = 2, 2 }, unwell(time.Minute)},
			want{rule: "succeed, but not before its pods have ended", sets: []string{"QuotaReserved=True/PodsRunning", "Unhealthy=False/FoundNoFailedPods"}}},
		{"all pods succeeded, one of an earlier workload runs", []change{pods(0, 0, 2, 0), func(f *facts) { f.pods.active = 1 }},
			want{rule: "succeed, but not before its pods have ended", sets: []string{"QuotaReserved=True/PodsRunning"}}},
		{"components were removed", []change{changed, missing}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, again: immediately,
			sets: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"a wave of pods succeeded, the Job goes on", []change{judging(working), pods(0, 0, 2, 0)}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"reported success, pods are gone", []change{judging(succeeded)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: immediately, sets: succeeds}},
		{"one is done, another runs", []change{judging(succeeded), another(componentFact{stage: deployed, replicas: 1, minReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one is done and away, another runs", []change{missing, func(f *facts) { f.components[0].completed = true },
			another(componentFact{stage: deployed, replicas: 1, minReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one is done, the pods of another succeeded", []change{judging(succeeded), another(componentFact{stage: deployed, replicas: 1, minReady: 1}), pods(0, 0, 1, 0)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, again: immediately, sets: succeeds}},
		{"failed pod, first seen", []change{pods(0, 1, 0, 1)}, want{rule: "failed pods, for a while", again: time.Minute,
			sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, half a minute ago", []change{pods(0, 1, 0, 1), unwell(30 * time.Second)}, want{rule: "failed pods, for a while",
			again: 30 * time.Second, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, for a minute", []change{pods(0, 1, 0, 1), unwell(time.Minute)}, want{rule: "failed pods, for too long",
			next: awv1beta2.PhaseResetting, retry: 1, again: immediately, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod without grace and retries", []change{pods(0, 1, 0, 1), agreed(func(t *Terms) { t.FailureGrace, t.RetryLimit = 0, 0 })},
			want{rule: "failed pods, for too long", next: awv1beta2.PhaseFailed, again: immediately, sets: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"a state that may pass", []change{func(f *facts) { f.components[0].outcome = failing }, pods(0, 2, 0, 0)},
			want{rule: "failed pods, for a while", again: time.Minute, sets: []string{"Unhealthy=True/FailedComponent"}}},
		{"bad nodes do not count", []change{pods(0, 2, 0, 0), onBadNode, retried(2), terminalCode}, want{rule: "pods on nodes that they should leave",
			next: awv1beta2.PhaseResetting, again: immediately, sets: []string{"Unhealthy=True/AutopilotNoExecute"},
			unhealthy: "Workload contains pods using NoExecute resources on Nodes: n1, n2"}},
		{"bad nodes, no retry left", []change{pods(0, 2, 0, 0), onBadNode, retried(3)}, want{rule: "pods on nodes that they should leave",
			next: awv1beta2.PhaseFailed, again: immediately, sets: []string{"Unhealthy=True/AutopilotNoExecute"}}},
		{"ready", []change{pods(0, 1, 1, 0), unwell(time.Second)}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady", "Unhealthy=False/FoundNoFailedPods"}}},
		{"a workload without pods goes on", []change{func(f *facts) { f.components[0].replicas, f.components[0].minReady = 0, 0 }}, want{rule: "pods are ready",
			sets: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one pending, warming up", []change{pods(1, 1, 0, 0), deployedFor(4 * time.Minute)}, want{rule: "too few pods, for a while", again: time.Minute}},
		{"pods do not appear", []change{pods(1, 0, 0, 0), deployedFor(20 * time.Second)}, want{rule: "too few pods, for a while", again: 40 * time.Second}},
		{"pods did not appear", []change{pods(1, 0, 0, 0), deployedFor(time.Minute)}, want{rule: "too few pods, for too long",
			next: awv1beta2.PhaseResetting, retry: 1, again: immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"},
			unhealthy: "1 pods pending; 0 pods running; 0 pods succeeded"}},
		{"created long after it was announced", []change{pods(1, 1, 0, 0), func(f *facts) { f.components[0].since = f.now.Add(-time.Minute) }},
			want{rule: "too few pods, for a while", again: 4 * time.Minute}},
		{"warmed up for too long", []change{pods(1, 1, 0, 0), deployedFor(5 * time.Minute), retried(3)}, want{rule: "too few pods, for too long",
			next: awv1beta2.PhaseFailed, again: immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"}}},
	})
}

// [D3] [appwrapper-54] A dip below the expected pods gets the failure grace period, counted from the dip.
func TestADipOfReadyPodsHasTheFailureGracePeriod(t *testing.T) {
	for _, tc := range []ruleCase{
		{"first seen", []change{pods(1, 1, 0, 0), ready(9 * time.Minute)},
			want{rule: "too few pods, for a while", again: time.Minute, sets: []string{"PodsReady=False/InsufficientPodsReady"}}},
		{"half way", []change{pods(1, 1, 0, 0), dipped(40 * time.Second)}, want{rule: "too few pods, for a while", again: 20 * time.Second}},
		{"over", []change{pods(1, 1, 0, 0), dipped(time.Minute)}, want{rule: "too few pods, for too long", next: awv1beta2.PhaseResetting,
			retry: 1, again: immediately, sets: []string{"Unhealthy=True/InsufficientPodsReady"}}},
		{"not before the end of the warm-up", []change{pods(1, 1, 0, 0), deployedFor(2 * time.Minute), dipped(90 * time.Second)},
			want{rule: "too few pods, for a while", again: 3 * time.Minute}},
		{"without a grace period", []change{pods(1, 1, 0, 0), ready(9 * time.Minute), agreed(func(t *Terms) { t.FailureGrace = 0 })},
			want{rule: "too few pods, for too long", next: awv1beta2.PhaseResetting, retry: 1, again: immediately,
				sets: []string{"Unhealthy=True/InsufficientPodsReady", "PodsReady=False/InsufficientPodsReady"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			compare(t, decide(whileRunning, usual(awv1beta2.PhaseRunning, tc.facts...)), tc.want)
		})
	}
}

func TestSuccessAndFailureLeaveAnAccount(t *testing.T) {
	d := decide(whileRunning, usual(awv1beta2.PhaseRunning, judging(succeeded)))
	if c := meta.FindStatusCondition(d.conditions, awv1beta2.ConditionQuotaReserved); c.Message != done2 {
		t.Errorf("message %q", c.Message)
	}
	if d.completed == nil || !d.completed.Equal(noon) {
		t.Errorf("completed %v", d.completed)
	}
	d = decide(whileRunning, usual(awv1beta2.PhaseRunning, judging(failed), func(f *facts) {
		f.components[0].message, f.pods.report = "BackoffLimitExceeded", strings.Repeat("pod p: exit code 3; ", 100)
	}))
	if d.failure == nil || !strings.HasPrefix(d.failure.Message, "Found 1 failed components; Deployment d (BackoffLimitExceeded); pod p: exit code 3") ||
		len(d.failure.Message) > maxFailure || !d.failure.Time.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("failure %+v", d.failure)
	}
	if d.completed != nil {
		t.Error("a reset is no completion")
	}
}
