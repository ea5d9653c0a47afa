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
	{"components were changed", componentsChanged, (*Facts).failComponentsChanged},
	{"a component is missing", func(f *Facts) bool { return f.existingComponents() < len(f.Components) }, func(f *Facts) Decision {
		message := fmt.Sprintf("Only found %d deployed components, but was expecting %d", f.existingComponents(), len(f.Components))
		return f.fail(awv1beta2.ReasonMissingComponent, message, f.titles(isMissing))
	}},
	{"a component failed", func(f *Facts) bool { return f.count(hasFailed) > 0 }, func(f *Facts) Decision {
		return f.retryOrFail(awv1beta2.ReasonFailedComponent, fmt.Sprintf("Found %d failed components", f.count(hasFailed)), f.titles(hasFailed))
	}},
	{"wait for pods of succeeded components", func(f *Facts) bool { return isComplete(f) && f.Pods.Active > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: append(f.clearUnhealthy(), trueCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonPodsRunning,
			"The components have succeeded, but some of their pods still run: the quota is released when these pods have ended"))}
	}},
	{"succeed", isComplete, func(f *Facts) Decision {
		message := f.successMessage()
		d := transitionTo(awv1beta2.PhaseSucceeded,
			falseCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonSucceeded, message),
			trueCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSucceeded, message),
			trueCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSufficientPodsReady, message)).withConditions(f.clearUnhealthy())
		d.CompletionTime = &f.Now
		return d
	}},
	{"wait for the failure grace period", func(f *Facts) bool { return f.isUnhealthy() && f.until(f.failureDeadline()) > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: []metav1.Condition{f.unhealthyCondition()}, RequeueAfter: f.until(f.failureDeadline())}
	}},
	{"failure grace period expired", (*Facts).isUnhealthy, func(f *Facts) Decision {
		c := f.unhealthyCondition()
		return f.retryOrFail(c.Reason, c.Message, f.unhealthyDetail())
	}},
	{"pods on unhealthy nodes", func(f *Facts) bool { return len(f.Pods.NoExecute) > 0 }, func(f *Facts) Decision {
		message := "Workload contains pods using NoExecute resources on Nodes: " + strings.Join(f.Pods.NoExecute, ", ")
		// The workload did not cause this: the retry is not counted, and exit codes are ignored.
		return f.resetWithinLimit(awv1beta2.ReasonAutopilotNoExecute, message, "", 0)
	}},
	{"pods are ready", (*Facts).enoughPods, func(f *Facts) Decision { return Decision{Conditions: append(f.clearUnhealthy(), f.podsReady()...)} }},
	{"wait for pods", func(f *Facts) bool { return f.until(f.readyDeadline()) > 0 }, func(f *Facts) Decision {
		podsReady := f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.podCountsWithDiagnosis())
		if reason := f.reason(awv1beta2.ConditionPodsReady); reason != "" && f.Pods.Diagnosis != "" && !f.isTrue(awv1beta2.ConditionPodsReady) {
			podsReady = []metav1.Condition{falseCondition(awv1beta2.ConditionPodsReady, reason, f.podCountsWithDiagnosis())} // readyDeadline depends on the reason
		}
		return Decision{RequeueAfter: f.until(f.readyDeadline())}.withConditions(f.clearUnhealthy(), podsReady)
	}},
	{"pods not ready in time", always, func(f *Facts) Decision {
		d := f.retryOrFail(awv1beta2.ReasonInsufficientPods, f.podCounts(), f.Pods.Diagnosis)
		if d.NextPhase != awv1beta2.PhaseFailed {
			return d.withConditions(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonInsufficientPods, f.podCountsWithDiagnosis()))
		}
		return d
	}},
}

func isMissing(c ComponentFact) bool { return c.Missing && !c.Done() }

func hasFailed(c ComponentFact) bool { return c.Outcome == Failed && !c.Completed }

func isFailing(c ComponentFact) bool { return c.Outcome == Failing && !c.Completed }

// existingComponents returns the number of components that exist or are done.
func (f *Facts) existingComponents() int { return len(f.Components) - f.count(isMissing) }

// isComplete reports whether all components that have replicas and report completion are done, and all other pods have succeeded.
// Without such components only pods count, and a workload without pods never completes.
func isComplete(f *Facts) bool {
	notSucceeded := f.Pods.Pending + f.Pods.Running + f.Pods.Failed
	reporting := f.count(func(c ComponentFact) bool { return c.ReportsCompletion && c.Replicas > 0 })
	unfinished := f.count(func(c ComponentFact) bool { return c.ReportsCompletion && c.Replicas > 0 && !c.Done() })
	if unfinished > 0 {
		return false
	}
	if f.Expected() == 0 {
		return reporting > 0
	}
	return notSucceeded == 0 && f.Pods.Succeeded >= f.Expected()
}

// successMessage reports all pods of the workload, including those that a finished component has deleted.
func (f *Facts) successMessage() string {
	pods := f.Pods.Succeeded
	for _, c := range f.Components {
		if c.Done() {
			pods += c.Replicas
		}
	}
	return fmt.Sprintf("%d pods succeeded and no running, pending, or failed pods", pods)
}

// isUnhealthy reports whether pods have failed or components are failing. Their controllers may still replace the pods.
func (f *Facts) isUnhealthy() bool { return f.Pods.Failed > 0 || f.count(isFailing) > 0 }

// unhealthyCondition returns the condition Unhealthy. It has no message for failed pods: each change of their number would update the
// status.
func (f *Facts) unhealthyCondition() metav1.Condition {
	if f.Pods.Failed == 0 {
		return trueCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFailedComponent,
			fmt.Sprintf("Found %d failed components", f.count(isFailing)))
	}
	return trueCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFoundFailedPods, "")
}

func (f *Facts) unhealthyDetail() string {
	if f.Pods.Failed == 0 {
		return f.titles(isFailing)
	}
	return fmt.Sprintf("%d failed pods", f.Pods.Failed)
}

// failureDeadline returns the end of the failure grace period, which starts when the workload became unhealthy.
func (f *Facts) failureDeadline() time.Time {
	start := f.Now
	if f.isTrue(awv1beta2.ConditionUnhealthy) {
		start = f.since(awv1beta2.ConditionUnhealthy)
	}
	return start.Add(f.Terms.FailureGrace)
}

func (f *Facts) enoughPods() bool { return f.Pods.Running+f.Pods.Succeeded >= f.minReady() }

func (f *Facts) podsReady() []metav1.Condition {
	message := fmt.Sprintf("%d pods running; %d pods succeeded", f.Pods.Running, f.Pods.Succeeded)
	return []metav1.Condition{trueCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSufficientPodsReady, message)}
}

// readyDeadline returns when pods must be ready: at the end of the warm-up grace period, or of the admission grace period while pods are
// missing. A workload that was ready has at least the failure grace period after it became unready.
func (f *Facts) readyDeadline() time.Time {
	deadline := f.startTime().Add(f.Terms.AdmissionGrace)
	if f.Pods.Pending+f.Pods.Running+f.Pods.Succeeded >= f.minReady() {
		deadline = f.startTime().Add(f.Terms.WarmupGrace)
	}
	unreadySince := time.Time{}
	switch {
	case f.isTrue(awv1beta2.ConditionPodsReady):
		unreadySince = f.Now
	case f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods:
		unreadySince = f.since(awv1beta2.ConditionPodsReady)
	}
	if graceEnd := unreadySince.Add(f.Terms.FailureGrace); !unreadySince.IsZero() && graceEnd.After(deadline) {
		return graceEnd
	}
	return deadline
}

func (f *Facts) podCounts() string {
	return fmt.Sprintf("%d pods pending; %d pods running; %d pods succeeded", f.Pods.Pending, f.Pods.Running, f.Pods.Succeeded)
}

// podCountsWithDiagnosis returns the counts and the reason why pods do not run.
func (f *Facts) podCountsWithDiagnosis() string {
	if f.Pods.Diagnosis == "" {
		return f.podCounts()
	}
	return f.podCounts() + "; " + f.Pods.Diagnosis
}

func (f *Facts) clearUnhealthy() []metav1.Condition {
	return f.clearCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonFoundNoFailedPods, "")
}

// titles returns the titles and messages of the components that match.
func (f *Facts) titles(matches func(ComponentFact) bool) string {
	var names []string
	for _, c := range f.Components {
		switch {
		case !matches(c):
		case c.Message != "":
			names = append(names, c.Title+" ("+c.Message+")")
		default:
			names = append(names, c.Title)
		}
	}
	return strings.Join(names, ", ")
}
