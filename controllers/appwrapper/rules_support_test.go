package appwrapper

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// noon is the present of rule tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// change is a difference from usual facts.
type change = func(*facts)

// usual are facts of a phase about a workload of one Job with two pods, with the default terms. Conditions got their status
// ten minutes ago.
func usual(phase awv1beta2.AppWrapperPhase, changes ...change) *facts {
	terms := termsOf(nil, defaultSettings().FaultTolerance)
	f := &facts{
		now: noon, phase: phase, terms: terms,
		components: []componentFact{{title: "Deployment d", stage: deployed, replicas: 2, minReady: 2}},
	}
	switch phase {
	case awv1beta2.PhaseEmpty:
		f.components = nil
	case awv1beta2.PhaseSuspended:
		f.components[0].stage = fresh
	case awv1beta2.PhaseSucceeded:
		holding(awv1beta2.ConditionResourcesDeployed)(f)
		condition(awv1beta2.ConditionQuotaReserved, metav1.ConditionFalse, awv1beta2.ReasonSucceeded, 10*time.Minute)(f)
		completed(10 * time.Minute)(f)
	case awv1beta2.PhaseFailed:
		holding(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved, awv1beta2.ConditionUnhealthy)(f)
		completed(10 * time.Minute)(f)
	case awv1beta2.PhaseResetting:
		holding(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved, awv1beta2.ConditionUnhealthy)(f)
	case awv1beta2.PhaseResuming:
		f.components[0].stage = announced
		holding(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved)(f)
	default:
		holding(awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved)(f)
	}
	for _, c := range changes {
		c(f)
	}
	return f
}

func condition(kind string, status metav1.ConditionStatus, reason string, ago time.Duration) change {
	return func(f *facts) {
		meta.RemoveStatusCondition(&f.conditions, kind)
		f.conditions = append(f.conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			LastTransitionTime: metav1.NewTime(f.now.Add(-ago))})
	}
}

func holding(kinds ...string) change {
	return func(f *facts) {
		for _, kind := range kinds {
			condition(kind, metav1.ConditionTrue, "Test", 10*time.Minute)(f)
		}
	}
}

func completed(ago time.Duration) change {
	return func(f *facts) { f.completed = &metav1.Time{Time: f.now.Add(-ago)} }
}

func suspend(f *facts) { f.suspend = true }

func pods(pending, running, succeeded, failed int) change {
	return func(f *facts) {
		f.pods.pending, f.pods.running, f.pods.succeeded, f.pods.failed = pending, running, succeeded, failed
		f.pods.all, f.pods.active = pending+running+succeeded+failed, pending+running
	}
}

func staged(s stage) change { return func(f *facts) { f.components[0].stage = s } }

func judging(o outcome) change {
	return func(f *facts) { f.components[0].judges, f.components[0].outcome = true, o }
}

func retried(times int32) change { return func(f *facts) { f.retries = times } }

func agreed(change func(*Terms)) change { return func(f *facts) { change(&f.terms) } }

func made(err error, fatal bool) change { return func(f *facts) { f.created = &creation{err, fatal} } }

func removed(d deletion) change { return func(f *facts) { f.deleted = &d } }

func deployedFor(ago time.Duration) change {
	return condition(awv1beta2.ConditionResourcesDeployed, metav1.ConditionTrue, awv1beta2.ReasonResuming, ago)
}

// want is what a decision is compared with.
type want struct {
	rule  string
	next  awv1beta2.AppWrapperPhase
	act   act
	retry int32
	again time.Duration
	// sets are conditions as "Type=Status/Reason"; all of them, in any order.
	sets []string
	// message of the condition Unhealthy.
	unhealthy string
}

func short(list []metav1.Condition) sets.Set[string] {
	out := sets.New[string]()
	for _, c := range list {
		out.Insert(c.Type + "=" + string(c.Status) + "/" + c.Reason)
	}
	return out
}

func compare(t *testing.T, got decision, w want) {
	t.Helper()
	if got.rule != w.rule || got.next != w.next || got.act != w.act || got.retry != w.retry || got.again != w.again {
		t.Errorf("got rule %q next %q act %d retry %d again %s\nwant    %q next %q act %d retry %d again %s",
			got.rule, got.next, got.act, got.retry, got.again, w.rule, w.next, w.act, w.retry, w.again)
	}
	if has, should := short(got.conditions), sets.New(w.sets...); !has.Equal(should) {
		t.Errorf("conditions\n%q\nwant\n%q", sets.List(has), sets.List(should))
	}
	if c := meta.FindStatusCondition(got.conditions, awv1beta2.ConditionUnhealthy); w.unhealthy != "" && (c == nil || c.Message != w.unhealthy) {
		t.Errorf("Unhealthy %+v, want message %q", c, w.unhealthy)
	}
}

// ruleCase is one line of a table.
type ruleCase struct {
	name  string
	facts []change
	want  want
}

func runCases(t *testing.T, phase awv1beta2.AppWrapperPhase, list []rule, cases []ruleCase) {
	t.Helper()
	reached := sets.New[string]()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { compare(t, decide(list, usual(phase, tc.facts...)), tc.want) })
		reached.Insert(tc.want.rule)
	}
	for _, r := range list {
		if !reached.Has(r.name) {
			t.Errorf("no case for the rule %q", r.name)
		}
	}
}
