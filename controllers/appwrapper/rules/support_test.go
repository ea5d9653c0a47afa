package rules

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// noon is the current time in rule tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// change modifies facts.
type change = func(*Facts)

// newFacts returns facts of a phase with one Deployment of two pods, except in the empty phase. The last transition was ten minutes ago.
func newFacts(phase awv1beta2.AppWrapperPhase, changes ...change) *Facts {
	terms := TermsOf(nil, config.DefaultAppWrapper().FaultTolerance)
	f := &Facts{
		Now: noon, Phase: phase, Terms: terms,
		Components: []ComponentFact{{Title: "Deployment d", Stage: Deployed, Replicas: 2, MinReady: 2}},
	}
	switch phase {
	case awv1beta2.PhaseEmpty:
		f.Components = nil
	case awv1beta2.PhaseSuspended:
		f.Components[0].Stage = NotCreated
	case awv1beta2.PhaseSucceeded:
		withConditionsTrue(awv1beta2.ConditionResourcesDeployed)(f)
		condition(awv1beta2.ConditionQuotaReserved, metav1.ConditionFalse, awv1beta2.ReasonSucceeded, 10*time.Minute)(f)
		completed(10 * time.Minute)(f)
	case awv1beta2.PhaseFailed:
		withConditionsTrue(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved, awv1beta2.ConditionUnhealthy)(f)
		completed(10 * time.Minute)(f)
	case awv1beta2.PhaseResetting:
		withConditionsTrue(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved, awv1beta2.ConditionUnhealthy)(f)
	case awv1beta2.PhaseResuming:
		f.Components[0].Stage = Announced
		withConditionsTrue(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved)(f)
	default:
		withConditionsTrue(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved)(f)
	}
	for _, c := range changes {
		c(f)
	}
	return f
}

func condition(conditionType string, status metav1.ConditionStatus, reason string, ago time.Duration) change {
	return func(f *Facts) {
		meta.RemoveStatusCondition(&f.Conditions, conditionType)
		f.Conditions = append(f.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason,
			LastTransitionTime: metav1.NewTime(f.Now.Add(-ago))})
	}
}

func withConditionsTrue(conditionTypes ...string) change {
	return func(f *Facts) {
		for _, conditionType := range conditionTypes {
			condition(conditionType, metav1.ConditionTrue, "Test", 10*time.Minute)(f)
		}
	}
}

func completed(ago time.Duration) change {
	return func(f *Facts) { f.CompletionTime = &metav1.Time{Time: f.Now.Add(-ago)} }
}

func withSuspend(f *Facts) { f.Suspend = true }

func pods(pending, running, succeeded, failed int) change {
	return func(f *Facts) {
		f.Pods.Pending, f.Pods.Running, f.Pods.Succeeded, f.Pods.Failed = pending, running, succeeded, failed
		f.Pods.All, f.Pods.Active = pending+running+succeeded+failed, pending+running
	}
}

func withStage(s Stage) change { return func(f *Facts) { f.Components[0].Stage = s } }

func withOutcome(o Outcome) change {
	return func(f *Facts) { f.Components[0].ReportsCompletion, f.Components[0].Outcome = true, o }
}

func withRetries(times int32) change { return func(f *Facts) { f.Retries = times } }

func withTerms(change func(*Terms)) change { return func(f *Facts) { change(&f.Terms) } }

func creationResult(err error, terminal bool) change {
	return func(f *Facts) { f.Created = &Creation{err, terminal} }
}

func deletionResult(d Deletion) change { return func(f *Facts) { f.Deleted = &d } }

func deployedFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionResourcesDeployed, metav1.ConditionTrue, awv1beta2.ReasonResuming, ago)
}

// want is the expected decision.
type want struct {
	rule         string
	next         awv1beta2.AppWrapperPhase
	action       action
	retry        int32
	requeueAfter time.Duration
	// conditions are all conditions as "Type=Status/Reason", in any order.
	conditions []string
	// unhealthyMessage is the message of the condition Unhealthy; not compared if empty.
	unhealthyMessage string
}

func formatConditions(list []metav1.Condition) sets.Set[string] {
	out := sets.New[string]()
	for _, c := range list {
		out.Insert(c.Type + "=" + string(c.Status) + "/" + c.Reason)
	}
	return out
}

func compare(t *testing.T, got Decision, w want) {
	t.Helper()
	if got.Rule != w.rule || got.NextPhase != w.next || got.Action != w.action || got.Retry != w.retry || got.RequeueAfter != w.requeueAfter {
		t.Errorf("got  rule %q, next phase %q, action %d, retry %d, requeue after %s\nwant rule %q, next phase %q, action %d, retry %d, requeue after %s",
			got.Rule, got.NextPhase, got.Action, got.Retry, got.RequeueAfter, w.rule, w.next, w.action, w.retry, w.requeueAfter)
	}
	if gotConditions, wantConditions := formatConditions(got.Conditions), sets.New(w.conditions...); !gotConditions.Equal(wantConditions) {
		t.Errorf("got conditions\n%q\nwant\n%q", sets.List(gotConditions), sets.List(wantConditions))
	}
	if c := meta.FindStatusCondition(got.Conditions, awv1beta2.ConditionUnhealthy); w.unhealthyMessage != "" && (c == nil || c.Message != w.unhealthyMessage) {
		t.Errorf("got condition Unhealthy %+v, want message %q", c, w.unhealthyMessage)
	}
}

// ruleCase is a test case of the rules of one phase.
type ruleCase struct {
	name  string
	facts []change
	want  want
}

// runCases tests the decisions of a list of rules, and requires a case for each rule.
func runCases(t *testing.T, phase awv1beta2.AppWrapperPhase, list []Rule, cases []ruleCase) {
	t.Helper()
	decidingRules := sets.New[string]()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { compare(t, Decide(list, newFacts(phase, tc.facts...)), tc.want) })
		decidingRules.Insert(tc.want.rule)
	}
	for _, r := range list {
		if !decidingRules.Has(r.name) {
			t.Errorf("no case for the rule %q", r.name)
		}
	}
}
