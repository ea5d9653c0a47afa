package appwrapper

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var whileRunning = []rule{
	{"suspend", suspended, toSuspending},
	{"components were changed", componentsChanged, (*facts).failChanged},
	{"a component is missing", func(f *facts) bool { return f.found() < len(f.components) }, func(f *facts) decision {
		message := fmt.Sprintf("Only found %d deployed components, but was expecting %d", f.found(), len(f.components))
		return f.fail(awv1beta2.ReasonMissingComponent, message, f.titles(isMissing))
	}},
	{"a component failed", func(f *facts) bool { return f.count(hasFailed) > 0 }, func(f *facts) decision {
		return f.resetOrFail(awv1beta2.ReasonFailedComponent, fmt.Sprintf("Found %d failed components", f.count(hasFailed)), f.titles(hasFailed))
	}},
	{"succeed, but not before its pods have ended", func(f *facts) bool { return complete(f) && f.pods.active > 0 }, func(f *facts) decision {
		return decision{conditions: append(f.recovered(), set(awv1beta2.ConditionQuotaReserved, metav1.ConditionTrue, awv1beta2.ReasonPodsRunning,
			"The components have succeeded, and pods of them still run: the quota is given back when these have ended"))}
	}},
	{"succeed", complete, func(f *facts) decision {
		message := f.successMessage()
		d := to(awv1beta2.PhaseSucceeded,
			set(awv1beta2.ConditionQuotaReserved, metav1.ConditionFalse, awv1beta2.ReasonSucceeded, message),
			set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionTrue, awv1beta2.ReasonSucceeded, message),
			set(awv1beta2.ConditionPodsReady, metav1.ConditionTrue, awv1beta2.ReasonSufficientPodsReady, message))
		d.conditions = append(d.conditions, f.recovered()...)
		d.completed = &f.now
		return d
	}},
	{"failed pods, for a while", func(f *facts) bool { return f.impaired() && f.until(f.failureDeadline()) > 0 }, func(f *facts) decision {
		return decision{conditions: []metav1.Condition{f.impairment()}, again: f.until(f.failureDeadline())}
	}},
	{"failed pods, for too long", (*facts).impaired, func(f *facts) decision {
		c := f.impairment()
		return f.resetOrFail(c.Reason, c.Message, f.impairmentDetail())
	}},
	{"pods on nodes that they should leave", func(f *facts) bool { return len(f.pods.noExecute) > 0 }, func(f *facts) decision {
		message := "Workload contains pods using NoExecute resources on Nodes: " + strings.Join(f.pods.noExecute, ", ")
		return f.evacuate(awv1beta2.ReasonAutopilotNoExecute, message)
	}},
	{"pods are ready", (*facts).enoughPods, func(f *facts) decision {
		message := fmt.Sprintf("%d pods running; %d pods succeeded", f.pods.running, f.pods.succeeded)
		return decision{conditions: append(f.recovered(),
			set(awv1beta2.ConditionPodsReady, metav1.ConditionTrue, awv1beta2.ReasonSufficientPodsReady, message))}
	}},
	{"too few pods, for a while", func(f *facts) bool { return f.until(f.readyDeadline()) > 0 }, func(f *facts) decision {
		return decision{
			conditions: append(f.recovered(), f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.podCounts())...),
			again:      f.until(f.readyDeadline()),
		}
	}},
	{"too few pods, for too long", always, func(f *facts) decision {
		d := f.resetOrFail(awv1beta2.ReasonInsufficientPods, f.podCounts(), f.pods.diagnosis)
		if d.next != awv1beta2.PhaseFailed {
			d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.podCounts())...)
		}
		return d
	}},
}

func isMissing(c componentFact) bool { return c.missing && !c.done() }

func hasFailed(c componentFact) bool { return c.outcome == failed && !c.completed }

func isFailing(c componentFact) bool { return c.outcome == failing && !c.completed }

// found is the number of components that are there, or have done what they were there for.
func (f *facts) found() int { return len(f.components) - f.count(isMissing) }

// complete: kinds that report completion have done so, and of the other pods all have succeeded. Where no kind reports, the
// pods alone decide, and a workload without pods never completes.
func complete(f *facts) bool {
	busy := f.pods.pending + f.pods.running + f.pods.failed
	reporting := f.count(func(c componentFact) bool { return c.judges && c.replicas > 0 })
	open := f.count(func(c componentFact) bool { return c.judges && c.replicas > 0 && !c.done() })
	if open > 0 {
		return false
	}
	if f.expected() == 0 {
		return reporting > 0
	}
	return busy == 0 && f.pods.succeeded >= f.expected()
}

// successMessage tells of as many pods as the workload has, also where a kind removes them when it is done.
func (f *facts) successMessage() string {
	pods := f.pods.succeeded
	for _, c := range f.components {
		if c.done() {
			pods += c.replicas
		}
	}
	return fmt.Sprintf("%d pods succeeded and no running, pending, or failed pods", pods)
}

// impaired: something failed that may still be replaced.
func (f *facts) impaired() bool { return f.pods.failed > 0 || f.count(isFailing) > 0 }

// impairment is the condition that says so. The message about pods is empty, so that their number moves nothing.
func (f *facts) impairment() metav1.Condition {
	if f.pods.failed == 0 {
		return set(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFailedComponent,
			fmt.Sprintf("Found %d failed components", f.count(isFailing)))
	}
	return set(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFoundFailedPods, "")
}

func (f *facts) impairmentDetail() string {
	if f.pods.failed == 0 {
		return f.titles(isFailing)
	}
	return fmt.Sprintf("%d failed pods", f.pods.failed)
}

// failureDeadline is the end of the failure grace period. It starts when the failure was seen, which is now if it is not
// on record.
func (f *facts) failureDeadline() time.Time {
	start := f.now
	if f.is(awv1beta2.ConditionUnhealthy) {
		start = f.since(awv1beta2.ConditionUnhealthy)
	}
	return start.Add(f.terms.FailureGrace)
}

func (f *facts) enoughPods() bool { return f.pods.running+f.pods.succeeded >= f.needed() }

// readyDeadline is when pods must be ready: at the end of the warm-up period, or of the shorter admission period while pods
// are not even there; and for a workload that was ready once not before the failure grace period since then is over.
func (f *facts) readyDeadline() time.Time {
	deadline := f.started().Add(f.terms.AdmissionGrace)
	if f.pods.pending+f.pods.running+f.pods.succeeded >= f.needed() {
		deadline = f.started().Add(f.terms.WarmupGrace)
	}
	dip := time.Time{}
	switch {
	case f.is(awv1beta2.ConditionPodsReady):
		dip = f.now
	case f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods:
		dip = f.since(awv1beta2.ConditionPodsReady)
	}
	if grace := dip.Add(f.terms.FailureGrace); !dip.IsZero() && grace.After(deadline) {
		return grace
	}
	return deadline
}

func (f *facts) podCounts() string {
	return fmt.Sprintf("%d pods pending; %d pods running; %d pods succeeded", f.pods.pending, f.pods.running, f.pods.succeeded)
}

// recovered ends what was unhealthy.
func (f *facts) recovered() []metav1.Condition {
	return f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFoundNoFailedPods, "")
}

// titles names the components for which a question is answered with yes, and what they say about themselves.
func (f *facts) titles(question func(componentFact) bool) string {
	var names []string
	for _, c := range f.components {
		switch {
		case !question(c):
		case c.message != "":
			names = append(names, c.title+" ("+c.message+")")
		default:
			names = append(names, c.title)
		}
	}
	return strings.Join(names, ", ")
}
