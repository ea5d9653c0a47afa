package rules

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var whileRunning = []Rule{
	{"suspend", suspended, toSuspending},
	{"components were changed", componentsChanged, (*Facts).failChanged},
	{"a component is missing", func(f *Facts) bool { return f.found() < len(f.Components) }, func(f *Facts) Decision {
		message := fmt.Sprintf("Only found %d deployed components, but was expecting %d", f.found(), len(f.Components))
		return f.fail(awv1beta2.ReasonMissingComponent, message, f.titles(isMissing))
	}},
	{"a component failed", func(f *Facts) bool { return f.count(hasFailed) > 0 }, func(f *Facts) Decision {
		return f.resetOrFail(awv1beta2.ReasonFailedComponent, fmt.Sprintf("Found %d failed components", f.count(hasFailed)), f.titles(hasFailed))
	}},
	{"succeed, but not before its pods have ended", func(f *Facts) bool { return complete(f) && f.Pods.Active > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: append(f.recovered(), yes(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonPodsRunning,
			"The components have succeeded, and pods of them still run: the quota is given back when these have ended"))}
	}},
	{"succeed", complete, func(f *Facts) Decision {
		message := f.successMessage()
		d := to(awv1beta2.PhaseSucceeded,
			no(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonSucceeded, message),
			yes(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSucceeded, message),
			yes(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSufficientPodsReady, message)).and(f.recovered())
		d.Completed = &f.Now
		return d
	}},
	{"failed pods, for a while", func(f *Facts) bool { return f.impaired() && f.until(f.failureDeadline()) > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: []metav1.Condition{f.impairment()}, Again: f.until(f.failureDeadline())}
	}},
	{"failed pods, for too long", (*Facts).impaired, func(f *Facts) Decision {
		c := f.impairment()
		return f.resetOrFail(c.Reason, c.Message, f.impairmentDetail())
	}},
	{"pods on nodes that they should leave", func(f *Facts) bool { return len(f.Pods.NoExecute) > 0 }, func(f *Facts) Decision {
		message := "Workload contains pods using NoExecute resources on Nodes: " + strings.Join(f.Pods.NoExecute, ", ")
		// Not counted, and whatever exit codes there were: the workload is not to blame.
		return f.resetWithin(awv1beta2.ReasonAutopilotNoExecute, message, "", 0)
	}},
	{"pods are ready", (*Facts).enoughPods, func(f *Facts) Decision {
		message := fmt.Sprintf("%d pods running; %d pods succeeded", f.Pods.Running, f.Pods.Succeeded)
		return Decision{Conditions: append(f.recovered(), yes(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSufficientPodsReady, message))}
	}},
	{"too few pods, for a while", func(f *Facts) bool { return f.until(f.readyDeadline()) > 0 }, func(f *Facts) Decision {
		dip := f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.missingPods())
		if before := f.reason(awv1beta2.ConditionPodsReady); before != "" && f.Pods.Diagnosis != "" && !f.is(awv1beta2.ConditionPodsReady) {
			dip = []metav1.Condition{no(awv1beta2.ConditionPodsReady, before, f.missingPods())} // the reason says since when pods lack
		}
		return Decision{Again: f.until(f.readyDeadline())}.and(f.recovered(), dip)
	}},
	{"too few pods, for too long", always, func(f *Facts) Decision {
		d := f.resetOrFail(awv1beta2.ReasonInsufficientPods, f.podCounts(), f.Pods.Diagnosis)
		if d.Next != awv1beta2.PhaseFailed {
			return d.and(f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.missingPods()))
		}
		return d
	}},
}

func isMissing(c ComponentFact) bool { return c.Missing && !c.Done() }

func hasFailed(c ComponentFact) bool { return c.Outcome == Failed && !c.Completed }

func isFailing(c ComponentFact) bool { return c.Outcome == Failing && !c.Completed }

// found is the number of components that are there, or have done what they were there for.
func (f *Facts) found() int { return len(f.Components) - f.count(isMissing) }

// complete: kinds that report completion have done so, and of the other pods all have succeeded. Where no kind reports, the
// pods alone decide, and a workload without pods never completes.
func complete(f *Facts) bool {
	busy := f.Pods.Pending + f.Pods.Running + f.Pods.Failed
	reporting := f.count(func(c ComponentFact) bool { return c.Judges && c.Replicas > 0 })
	open := f.count(func(c ComponentFact) bool { return c.Judges && c.Replicas > 0 && !c.Done() })
	if open > 0 {
		return false
	}
	if f.Expected() == 0 {
		return reporting > 0
	}
	return busy == 0 && f.Pods.Succeeded >= f.Expected()
}

// successMessage tells of as many pods as the workload has, also where a kind removes them when it is done.
func (f *Facts) successMessage() string {
	pods := f.Pods.Succeeded
	for _, c := range f.Components {
		if c.Done() {
			pods += c.Replicas
		}
	}
	return fmt.Sprintf("%d pods succeeded and no running, pending, or failed pods", pods)
}

// impaired: something failed that may still be replaced.
func (f *Facts) impaired() bool { return f.Pods.Failed > 0 || f.count(isFailing) > 0 }

// impairment is the condition about it. The message about pods is empty, so that their number moves nothing.
func (f *Facts) impairment() metav1.Condition {
	if f.Pods.Failed == 0 {
		return yes(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFailedComponent,
			fmt.Sprintf("Found %d failed components", f.count(isFailing)))
	}
	return yes(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFoundFailedPods, "")
}

func (f *Facts) impairmentDetail() string {
	if f.Pods.Failed == 0 {
		return f.titles(isFailing)
	}
	return fmt.Sprintf("%d failed pods", f.Pods.Failed)
}

// failureDeadline is the end of the failure grace period. It starts when the failure was seen, which is now if it is not
// on record.
func (f *Facts) failureDeadline() time.Time {
	start := f.Now
	if f.is(awv1beta2.ConditionUnhealthy) {
		start = f.since(awv1beta2.ConditionUnhealthy)
	}
	return start.Add(f.Terms.FailureGrace)
}

func (f *Facts) enoughPods() bool { return f.Pods.Running+f.Pods.Succeeded >= f.needed() }

// readyDeadline is when pods must be ready: at the end of the warm-up period, or of the shorter admission period while pods
// are not even there; and for a workload that was ready once not before the failure grace period since then is over.
func (f *Facts) readyDeadline() time.Time {
	deadline := f.started().Add(f.Terms.AdmissionGrace)
	if f.Pods.Pending+f.Pods.Running+f.Pods.Succeeded >= f.needed() {
		deadline = f.started().Add(f.Terms.WarmupGrace)
	}
	dip := time.Time{}
	switch {
	case f.is(awv1beta2.ConditionPodsReady):
		dip = f.Now
	case f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods:
		dip = f.since(awv1beta2.ConditionPodsReady)
	}
	if grace := dip.Add(f.Terms.FailureGrace); !dip.IsZero() && grace.After(deadline) {
		return grace
	}
	return deadline
}

func (f *Facts) podCounts() string {
	return fmt.Sprintf("%d pods pending; %d pods running; %d pods succeeded", f.Pods.Pending, f.Pods.Running, f.Pods.Succeeded)
}

// missingPods adds to the counts why pods do not run.
func (f *Facts) missingPods() string {
	if f.Pods.Diagnosis == "" {
		return f.podCounts()
	}
	return f.podCounts() + "; " + f.Pods.Diagnosis
}

// recovered ends what was unhealthy.
func (f *Facts) recovered() []metav1.Condition {
	return f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFoundNoFailedPods, "")
}

// titles names the components for which a question is answered with yes, and what they say about themselves.
func (f *Facts) titles(question func(ComponentFact) bool) string {
	var names []string
	for _, c := range f.Components {
		switch {
		case !question(c):
		case c.Message != "":
			names = append(names, c.Title+" ("+c.Message+")")
		default:
			names = append(names, c.Title)
		}
	}
	return strings.Join(names, ", ")
}
