package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

var whileResetting = []Rule{
	{"suspend", suspended, toSuspending},
	{"clean up", holdsQuota, func(f *Facts) Decision {
		return f.deleteResources(func(f *Facts) Decision {
			return Decision{RequeueAfter: Immediately, Conditions: append(f.clearPodsReady(),
				falseCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonResetting, "Resources deleted for resetting AppWrapper"))}
		}, f.clearPodsReady()...)
	}},
	{"pause", func(f *Facts) bool { return f.until(f.resumeTime()) > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: f.clearPodsReady(), RequeueAfter: f.until(f.resumeTime())}
	}},
	{"components were changed", componentsChanged, (*Facts).failComponentsChanged},
	{"resume", always, func(f *Facts) Decision {
		const message = "Reset complete; resuming"
		d := transitionTo(awv1beta2.PhaseResuming, trueCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonResuming, message)).
			withConditions(f.clearCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming, message), f.clearPodsReady())
		d.Announce = true
		return d
	}},
}

var whileSuspending = []Rule{
	{"clean up", holdsQuota, func(f *Facts) Decision { return f.deleteResources(toSuspended) }},
	{"suspended", always, toSuspended},
}

var whileSucceeded = []Rule{
	{"note the end", (*Facts).completionTimeMissing, (*Facts).setCompletionTime},
	{"cleaned up", func(f *Facts) bool { return !f.isTrue(awv1beta2.ConditionResourcesDeployed) }, stay},
	{"keep for a while", func(f *Facts) bool { return !f.deletionStarted() && f.until(f.expiryTime()) > 0 }, func(f *Facts) Decision {
		return Decision{RequeueAfter: f.until(f.expiryTime())}
	}},
	{"clean up", always, func(f *Facts) Decision {
		return f.deleteResources(func(f *Facts) Decision {
			return Decision{Conditions: []metav1.Condition{falseCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSucceeded,
				fmt.Sprintf("Time to live after success of %s expired", f.Terms.SuccessTTL))}}
		})
	}},
}

var whileFailed = []Rule{
	{"note the end", (*Facts).completionTimeMissing, (*Facts).setCompletionTime},
	{"cleaned up", func(f *Facts) bool { return !holdsQuota(f) && !f.isTrue(awv1beta2.ConditionQuotaReserved) }, func(f *Facts) Decision {
		return Decision{Conditions: f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")}
	}},
	{"keep for a while", func(f *Facts) bool { return !f.deletionStarted() && !f.Suspend && f.until(f.deletionTime()) > 0 }, func(f *Facts) Decision {
		paused := falseCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionPaused,
			fmt.Sprintf("%s has value %s", awv1beta2.AnnotationDeletionOnFailure, f.Terms.DeletionOnFailure))
		return Decision{RequeueAfter: f.until(f.deletionTime()), Conditions: append(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""), paused)}
	}},
	{"clean up", always, func(f *Facts) Decision {
		return f.deleteResources(func(f *Facts) Decision {
			message := "Resources deleted for failed AppWrapper"
			if f.Terms.DeletionOnFailure > 0 && f.Suspend {
				message = "Kueue forced resource deletion by suspending AppWrapper"
			}
			return Decision{Conditions: []metav1.Condition{
				falseCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonFailed, message),
				falseCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonFailed, "No resources deployed"),
			}}
		}, f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")...)
	}},
}

// WhileTerminating holds for every AppWrapper that is being deleted, whatever its phase.
var WhileTerminating = []Rule{
	{"clean up", holdsQuota, func(f *Facts) Decision {
		d := f.deleteResources(releaseQuota)
		if f.Deleted != nil && !f.Deleted.Finished() && f.Phase != awv1beta2.PhaseTerminating {
			d.NextPhase = awv1beta2.PhaseTerminating
		}
		return d
	}},
	{"give back the quota", func(f *Facts) bool { return f.isTrue(awv1beta2.ConditionQuotaReserved) }, releaseQuota},
	{"let go", always, func(*Facts) Decision { return Decision{RemoveFinalizer: true} }},
}

func releaseQuota(f *Facts) Decision {
	return Decision{RequeueAfter: Immediately}.withConditions(
		f.clearCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonTerminating, "Resources successfully deleted"),
		f.clearCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonTerminating, "No resources deployed"))
}

func toSuspended(f *Facts) Decision {
	const message = "Suspend is true"
	return transitionTo(awv1beta2.PhaseSuspended,
		falseCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonSuspended, message),
		falseCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSuspended, message),
	).withConditions(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSuspended, ""), f.clearCreateFailed(awv1beta2.ReasonSuspended, ""), f.clearCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonSuspended, ""))
}

// mayUseQuota: ResourcesDeployed is True, or labelled pods exist. Quota is released only when it is false.
func holdsQuota(f *Facts) bool {
	return f.isTrue(awv1beta2.ConditionResourcesDeployed) || f.Pods.All > 0
}

// deleting: clean-up has begun, and is not interrupted any more.
func (f *Facts) deletionStarted() bool { return f.isTrue(awv1beta2.ConditionDeletingResources) }

// cleanUp runs the deletion routine and continues with done when nothing is left. Meanwhile the conditions of its own and
// those given hold.
func (f *Facts) deleteResources(done func(*Facts) Decision, meanwhile ...metav1.Condition) Decision {
	force := f.Now // deletion begins now
	if f.deletionStarted() {
		force = f.since(awv1beta2.ConditionDeletingResources)
	}
	remaining := f.until(force.Add(f.Terms.ForcefulDeletion))
	switch {
	case f.Deleted == nil && remaining == 0 && f.deletionStarted():
		return Decision{Action: ForceDeletion}
	case f.Deleted == nil:
		return Decision{Action: DeleteComponents}
	case f.Deleted.Finished():
		return done(f).withConditions(f.clearCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionComplete, ""))
	}
	message := ""
	if f.Deleted.Err != nil {
		message = f.Deleted.Err.Error()
	}
	again := remaining
	if f.Deleted.Unwatched || f.Deleted.Err != nil || remaining == 0 {
		again = min(max(remaining, Immediately), UnwatchedInterval)
	}
	if remaining == 0 && f.deletionStarted() { // what was forced a moment ago needs some time
		again = UnwatchedInterval
	}
	return Decision{RequeueAfter: again, Conditions: append(meanwhile,
		trueCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionInitiated, message))}
}

// unready clears PodsReady, also of the memory of a dip that ended with the reset.
func (f *Facts) clearPodsReady() []metav1.Condition {
	if f.isTrue(awv1beta2.ConditionPodsReady) || f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods {
		return []metav1.Condition{falseCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResetting, "")}
	}
	return f.clearCreateFailed(awv1beta2.ReasonResetting, "")
}

// pauseEnd is when a reset workload may start again: the pause counts from the failure.
func (f *Facts) resumeTime() time.Time {
	if !f.isTrue(awv1beta2.ConditionUnhealthy) {
		return f.Now
	}
	return f.since(awv1beta2.ConditionUnhealthy).Add(f.Terms.RetryPause)
}

// expiry is when the objects of a successful workload go.
func (f *Facts) expiryTime() time.Time { return f.completionTime().Add(f.Terms.SuccessTTL) }

// keptUntil is when the objects of a failed workload go.
func (f *Facts) deletionTime() time.Time { return f.completionTime().Add(f.Terms.DeletionOnFailure) }

// endUnknown: the original, which stored it, had no field for the end.
func (f *Facts) completionTimeMissing() bool { return f.CompletionTime == nil }

func (f *Facts) setCompletionTime() Decision {
	at := f.completionTime()
	return Decision{CompletionTime: &at, RequeueAfter: Immediately}
}

// maxFailure bounds the message about a failure in bytes.
const maxFailureMessage = 1024

// resetOrFail tries again and counts it, while the limit allows it. An exit code may forbid it.
func (f *Facts) retryOrFail(reason, message, detail string) Decision {
	if f.Pods.Terminal {
		return f.fail(reason, message, detail)
	}
	return f.resetWithinLimit(reason, message, detail, 1)
}

func (f *Facts) resetWithinLimit(reason, message, detail string, increment int32) Decision {
	if f.Retries >= f.Terms.RetryLimit {
		return f.fail(reason, message, detail)
	}
	d := transitionTo(awv1beta2.PhaseResetting, trueCondition(awv1beta2.ConditionUnhealthy, reason, message))
	d.Retry, d.Failure = increment, f.failure(reason, message, detail)
	return d
}

// fail ends the workload.
func (f *Facts) fail(reason, message, detail string) Decision {
	d := transitionTo(awv1beta2.PhaseFailed, trueCondition(awv1beta2.ConditionUnhealthy, reason, message)).
		withConditions(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""))
	d.CompletionTime, d.Failure = &f.Now, f.failure(reason, message, detail)
	return d
}

// account keeps what is known of a failure before its remains are deleted.
func (f *Facts) failure(reason, message, detail string) *awv1beta2.AppWrapperFailure {
	known := slices.DeleteFunc([]string{message, detail, f.Pods.Report}, func(text string) bool { return text == "" })
	text := conditions.Clip(strings.Join(known, "; "), maxFailureMessage)
	return &awv1beta2.AppWrapperFailure{Time: metav1.NewTime(f.Now), Reason: reason, Message: text}
}
