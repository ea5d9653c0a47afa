package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func withChangedComponents(f *Facts) { f.ComponentsChanged = true }

func withMissingComponent(f *Facts) { f.Components[0].Missing = true }

func withTerminalExitCode(f *Facts) { f.Pods.Terminal = true }

func onUnhealthyNodes(f *Facts) { f.Pods.NoExecute = []string{"n1", "n2"} }

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

const twoPodsSucceeded = "2 pods succeeded and no running, pending, or failed pods"

// [appwrapper-4] [appwrapper-5] [appwrapper-6] [appwrapper-9] [appwrapper-55]
func TestRulesWhileRunning(t *testing.T) {
	succeededConditions := []string{"QuotaReserved=False/Succeeded", "ResourcesDeployed=True/Succeeded", "PodsReady=True/SufficientPodsReady"}
	runCases(t, awv1beta2.PhaseRunning, whileRunning, []ruleCase{
		{"suspended, component missing", []change{withSuspend, withMissingComponent}, want{rule: "suspend", next: awv1beta2.PhaseSuspending, requeueAfter: Immediately}},
		{"missing component", []change{withMissingComponent}, want{rule: "a component is missing", next: awv1beta2.PhaseFailed, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/MissingComponent"}, unhealthyMessage: "Only found 0 deployed components, but was expecting 1"}},
		{"missing component that succeeded", []change{withMissingComponent, withOutcome(Succeeded)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, requeueAfter: Immediately, conditions: succeededConditions}},
		{"failed component", []change{withOutcome(Failed)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting, retry: 1, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/FailedComponent"}, unhealthyMessage: "Found 1 failed components"}},
		{"failed component, terminal exit code", []change{withOutcome(Failed), withTerminalExitCode}, want{rule: "a component failed", next: awv1beta2.PhaseFailed,
			requeueAfter: Immediately, conditions: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, last retry", []change{withOutcome(Failed), withRetries(2)}, want{rule: "a component failed", next: awv1beta2.PhaseResetting,
			retry: 1, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/FailedComponent"}}},
		{"failed component, no retry left", []change{withOutcome(Failed), withRetries(3), podsReady(time.Minute)}, want{rule: "a component failed",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/FailedComponent", "PodsReady=False/Failed"}}},
		{"all pods succeeded", []change{pods(0, 0, 2, 0), podsReady(time.Minute)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded,
			requeueAfter: Immediately, conditions: succeededConditions}},
		{"succeeded component, active pods", []change{withOutcome(Succeeded), func(f *Facts) { f.Pods.All, f.Pods.Active = 2, 2 }, unhealthy(time.Minute)},
			want{rule: "wait for pods of succeeded components", conditions: []string{"QuotaReserved=True/PodsRunning", "Unhealthy=False/FoundNoFailedPods"}}},
		{"all pods succeeded, active pod of an earlier workload", []change{pods(0, 0, 2, 0), func(f *Facts) { f.Pods.Active = 1 }},
			want{rule: "wait for pods of succeeded components", conditions: []string{"QuotaReserved=True/PodsRunning"}}},
		{"components were removed", []change{withChangedComponents, withMissingComponent}, want{rule: "components were changed", next: awv1beta2.PhaseFailed, requeueAfter: Immediately,
			conditions: []string{"Unhealthy=True/ComponentsChanged"}}},
		{"pods succeeded, component in progress", []change{withOutcome(inProgress), pods(0, 0, 2, 0)}, want{rule: "pods are ready",
			conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"succeeded component without pods", []change{withOutcome(Succeeded)}, want{rule: "succeed", next: awv1beta2.PhaseSucceeded, requeueAfter: Immediately, conditions: succeededConditions}},
		{"one component succeeded, another in progress", []change{withOutcome(Succeeded), withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one component completed and deleted, another in progress", []change{withMissingComponent, func(f *Facts) { f.Components[0].Completed = true },
			withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 1, 0, 0)},
			want{rule: "pods are ready", conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"one component succeeded, pods of another succeeded", []change{withOutcome(Succeeded), withSecondComponent(ComponentFact{Stage: Deployed, Replicas: 1, MinReady: 1}), pods(0, 0, 1, 0)},
			want{rule: "succeed", next: awv1beta2.PhaseSucceeded, requeueAfter: Immediately, conditions: succeededConditions}},
		{"failed pod, healthy before", []change{pods(0, 1, 0, 1)}, want{rule: "wait for the failure grace period", requeueAfter: time.Minute,
			conditions: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, unhealthy for 30s", []change{pods(0, 1, 0, 1), unhealthy(30 * time.Second)}, want{rule: "wait for the failure grace period",
			requeueAfter: 30 * time.Second, conditions: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, unhealthy for 1m", []change{pods(0, 1, 0, 1), unhealthy(time.Minute)}, want{rule: "failure grace period expired",
			next: awv1beta2.PhaseResetting, retry: 1, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failed pod, no grace period and no retries", []change{pods(0, 1, 0, 1), withTerms(func(t *Terms) { t.FailureGrace, t.RetryLimit = 0, 0 })},
			want{rule: "failure grace period expired", next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/FoundFailedPods"}}},
		{"failing component", []change{func(f *Facts) { f.Components[0].Outcome = Failing }, pods(0, 2, 0, 0)},
			want{rule: "wait for the failure grace period", requeueAfter: time.Minute, conditions: []string{"Unhealthy=True/FailedComponent"}}},
		{"unhealthy nodes", []change{pods(0, 2, 0, 0), onUnhealthyNodes, withRetries(2), withTerminalExitCode}, want{rule: "pods on unhealthy nodes",
			next: awv1beta2.PhaseResetting, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/AutopilotNoExecute"},
			unhealthyMessage: "Workload contains pods using NoExecute resources on Nodes: n1, n2"}},
		{"unhealthy nodes, no retry left", []change{pods(0, 2, 0, 0), onUnhealthyNodes, withRetries(3)}, want{rule: "pods on unhealthy nodes",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/AutopilotNoExecute"}}},
		{"enough pods", []change{pods(0, 1, 1, 0), unhealthy(time.Second)}, want{rule: "pods are ready",
			conditions: []string{"PodsReady=True/SufficientPodsReady", "Unhealthy=False/FoundNoFailedPods"}}},
		{"no pods expected", []change{func(f *Facts) { f.Components[0].Replicas, f.Components[0].MinReady = 0, 0 }}, want{rule: "pods are ready",
			conditions: []string{"PodsReady=True/SufficientPodsReady"}}},
		{"pending pod in the warm-up period", []change{pods(1, 1, 0, 0), deployedFor(4 * time.Minute)}, want{rule: "wait for pods", requeueAfter: time.Minute}},
		{"too few pods in the admission period", []change{pods(1, 0, 0, 0), deployedFor(20 * time.Second)}, want{rule: "wait for pods", requeueAfter: 40 * time.Second}},
		{"too few pods after the admission period", []change{pods(1, 0, 0, 0), deployedFor(time.Minute)}, want{rule: "pods not ready in time",
			next: awv1beta2.PhaseResetting, retry: 1, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/InsufficientPodsReady"},
			unhealthyMessage: "1 pods pending; 0 pods running; 0 pods succeeded"}},
		{"component deployed after ResourcesDeployed", []change{pods(1, 1, 0, 0), func(f *Facts) { f.Components[0].Since = f.Now.Add(-time.Minute) }},
			want{rule: "wait for pods", requeueAfter: 4 * time.Minute}},
		{"pending pod after the warm-up period, no retry left", []change{pods(1, 1, 0, 0), deployedFor(5 * time.Minute), withRetries(3)}, want{rule: "pods not ready in time",
			next: awv1beta2.PhaseFailed, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/InsufficientPodsReady"}}},
	})
}

// [D3] [appwrapper-54] Unready pods have the failure grace period, which starts when PodsReady becomes False.
func TestUnreadyPodsHaveFailureGracePeriod(t *testing.T) {
	for _, tc := range []ruleCase{
		{"ready before", []change{pods(1, 1, 0, 0), podsReady(9 * time.Minute)},
			want{rule: "wait for pods", requeueAfter: time.Minute, conditions: []string{"PodsReady=False/InsufficientPodsReady"}}},
		{"unready for 40s", []change{pods(1, 1, 0, 0), podsReadyLost(40 * time.Second)}, want{rule: "wait for pods", requeueAfter: 20 * time.Second}},
		{"unready for 1m", []change{pods(1, 1, 0, 0), podsReadyLost(time.Minute)}, want{rule: "pods not ready in time", next: awv1beta2.PhaseResetting,
			retry: 1, requeueAfter: Immediately, conditions: []string{"Unhealthy=True/InsufficientPodsReady"}}},
		{"unready for 90s in the warm-up period", []change{pods(1, 1, 0, 0), deployedFor(2 * time.Minute), podsReadyLost(90 * time.Second)},
			want{rule: "wait for pods", requeueAfter: 3 * time.Minute}},
		{"no grace period", []change{pods(1, 1, 0, 0), podsReady(9 * time.Minute), withTerms(func(t *Terms) { t.FailureGrace = 0 })},
			want{rule: "pods not ready in time", next: awv1beta2.PhaseResetting, retry: 1, requeueAfter: Immediately,
				conditions: []string{"Unhealthy=True/InsufficientPodsReady", "PodsReady=False/InsufficientPodsReady"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			compare(t, Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, tc.facts...)), tc.want)
		})
	}
}

// The termination message of a container may contain credentials.
func TestFailureIsRedacted(t *testing.T) {
	d := Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, withOutcome(Failed), func(f *Facts) {
		f.Pods.Report = "pod p: cannot connect to postgresql://user:hunter2@db/x"
	}))
	if d.Failure == nil || strings.Contains(d.Failure.Message, "hunter2") || !strings.Contains(d.Failure.Message, "pod p: cannot connect") {
		t.Errorf("got failure %+v, want the report without the password", d.Failure)
	}
}

func TestCompletionIsRecorded(t *testing.T) {
	d := Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, withOutcome(Succeeded)))
	if c := meta.FindStatusCondition(d.Conditions, awv1beta2.ConditionQuotaReserved); c.Message != twoPodsSucceeded {
		t.Errorf("got message %q, want %q", c.Message, twoPodsSucceeded)
	}
	if d.CompletionTime == nil || !d.CompletionTime.Equal(noon) {
		t.Errorf("got completion time %v, want %v", d.CompletionTime, noon)
	}
	d = Decide(whileRunning, newFacts(awv1beta2.PhaseRunning, withOutcome(Failed), func(f *Facts) {
		f.Components[0].Message, f.Pods.Report = "BackoffLimitExceeded", strings.Repeat("pod p: exit code 3; ", 100)
	}))
	if d.Failure == nil || !strings.HasPrefix(d.Failure.Message, "Found 1 failed components; Deployment d (BackoffLimitExceeded); pod p: exit code 3") ||
		len(d.Failure.Message) > maxFailureMessage || !d.Failure.Time.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("got failure %+v, want the component, its message and the shortened report", d.Failure)
	}
	if d.CompletionTime != nil {
		t.Error("got a completion time after a reset, want none")
	}
}
