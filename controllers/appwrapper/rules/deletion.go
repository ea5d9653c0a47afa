package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

var whileResetting = []Rule{
	{"suspend", suspended, toSuspending},
	{"delete resources", holdsQuota, func(f *Facts) Decision {
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
	{"delete resources", holdsQuota, func(f *Facts) Decision { return f.deleteResources(toSuspended) }},
	{"suspended", always, toSuspended},
}

var whileSucceeded = []Rule{
	{"set completion time", (*Facts).completionTimeMissing, (*Facts).setCompletionTime},
	{"resources are deleted", func(f *Facts) bool { return !f.isTrue(awv1beta2.ConditionResourcesDeployed) }, stay},
	{"wait for the time to live", func(f *Facts) bool { return !f.deletionStarted() && f.until(f.expiryTime()) > 0 }, func(f *Facts) Decision {
		return Decision{RequeueAfter: f.until(f.expiryTime())}
	}},
	{"delete resources", always, func(f *Facts) Decision {
		return f.deleteResources(func(f *Facts) Decision {
			return Decision{Conditions: []metav1.Condition{falseCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSucceeded,
				fmt.Sprintf("Time to live after success of %s expired", f.Terms.SuccessTTL))}}
		})
	}},
}

var whileFailed = []Rule{
	{"set completion time", (*Facts).completionTimeMissing, (*Facts).setCompletionTime},
	{"resources are deleted", func(f *Facts) bool { return !holdsQuota(f) && !f.isTrue(awv1beta2.ConditionQuotaReserved) }, func(f *Facts) Decision {
		return Decision{Conditions: f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")}
	}},
	{"wait for the deletion grace period", func(f *Facts) bool { return !f.deletionStarted() && !f.Suspend && f.until(f.deletionTime()) > 0 }, func(f *Facts) Decision {
		paused := falseCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionPaused,
			fmt.Sprintf("%s has value %s", awv1beta2.AnnotationDeletionOnFailure, f.Terms.DeletionOnFailure))
		return Decision{RequeueAfter: f.until(f.deletionTime()), Conditions: append(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""), paused)}
	}},
	{"delete resources", always, func(f *Facts) Decision {
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

// WhileTerminating are the rules of every AppWrapper with a deletionTimestamp, in any phase.
var WhileTerminating = []Rule{
	{"delete resources", holdsQuota, func(f *Facts) Decision {
		d := f.deleteResources(releaseQuota)
		if f.Deleted != nil && !f.Deleted.Finished() && f.Phase != awv1beta2.PhaseTerminating {
			d.NextPhase = awv1beta2.PhaseTerminating
		}
		return d
	}},
	{"release quota", func(f *Facts) bool { return f.isTrue(awv1beta2.ConditionQuotaReserved) }, releaseQuota},
	{"remove finalizer", always, func(*Facts) Decision { return Decision{RemoveFinalizer: true} }},
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

// holdsQuota reports whether the AppWrapper still needs its quota: its resources are deployed, or its pods exist.
func holdsQuota(f *Facts) bool {
	return f.isTrue(awv1beta2.ConditionResourcesDeployed) || f.Pods.All > 0
}

// deletionStarted reports whether deletion of the resources has started. From then on, no rule delays it.
func (f *Facts) deletionStarted() bool { return f.isTrue(awv1beta2.ConditionDeletingResources) }

// deleteResources deletes the resources and returns onDeleted(f) when none remains. Until then it sets the given conditions and
// DeletingResources.
func (f *Facts) deleteResources(onDeleted func(*Facts) Decision, conditions ...metav1.Condition) Decision {
	startedAt := f.Now
	if f.deletionStarted() {
		startedAt = f.since(awv1beta2.ConditionDeletingResources)
	}
	remaining := f.until(startedAt.Add(f.Terms.ForcefulDeletion))
	switch {
	case f.Deleted == nil && remaining == 0 && f.deletionStarted():
		return Decision{Action: ForceDeletion}
	case f.Deleted == nil:
		return Decision{Action: DeleteComponents}
	case f.Deleted.Finished():
		return onDeleted(f).withConditions(f.clearCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionComplete, ""))
	}
	message := ""
	if f.Deleted.Err != nil {
		message = f.Deleted.Err.Error()
	}
	requeueAfter := remaining
	if f.Deleted.Unwatched || f.Deleted.Err != nil || remaining == 0 {
		requeueAfter = min(max(remaining, Immediately), DeletionPollInterval)
	}
	if remaining == 0 && f.deletionStarted() { // forced deletion takes effect asynchronously
		requeueAfter = DeletionPollInterval
	}
	return Decision{RequeueAfter: requeueAfter, Conditions: append(conditions,
		trueCondition(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionInitiated, message))}
}

// clearPodsReady sets PodsReady to False with another reason than InsufficientPods: with that reason, a grace period would start.
func (f *Facts) clearPodsReady() []metav1.Condition {
	if f.isTrue(awv1beta2.ConditionPodsReady) || f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods {
		return []metav1.Condition{falseCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResetting, "")}
	}
	return f.clearCreateFailed(awv1beta2.ReasonResetting, "")
}

// resumeTime returns when a reset workload may be resumed: RetryPause after it became unhealthy.
func (f *Facts) resumeTime() time.Time {
	if !f.isTrue(awv1beta2.ConditionUnhealthy) {
		return f.Now
	}
	return f.since(awv1beta2.ConditionUnhealthy).Add(f.Terms.RetryPause)
}

// expiryTime returns when the resources of a successful workload are deleted: SuccessTTL after its completion.
func (f *Facts) expiryTime() time.Time { return f.completionTime().Add(f.Terms.SuccessTTL) }

// deletionTime returns when the resources of a failed workload are deleted: DeletionOnFailure after its completion.
func (f *Facts) deletionTime() time.Time { return f.completionTime().Add(f.Terms.DeletionOnFailure) }

// completionTimeMissing reports whether status.completionTime is unset, as in objects of the CodeFlare operator.
func (f *Facts) completionTimeMissing() bool { return f.CompletionTime == nil }

func (f *Facts) setCompletionTime() Decision {
	completed := f.completionTime()
	return Decision{CompletionTime: &completed, RequeueAfter: Immediately}
}

// maxFailureMessage is the maximum size of the failure message in bytes.
const maxFailureMessage = 1024

// retryOrFail resets the workload until RetryLimit is reached, then fails it. A terminal exit code fails it immediately.
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

func (f *Facts) fail(reason, message, detail string) Decision {
	d := transitionTo(awv1beta2.PhaseFailed, trueCondition(awv1beta2.ConditionUnhealthy, reason, message)).
		withConditions(f.clearCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""))
	d.CompletionTime, d.Failure = &f.Now, f.failure(reason, message, detail)
	return d
}

// failure describes a failure before the failed objects are deleted.
func (f *Facts) failure(reason, message, detail string) *awv1beta2.AppWrapperFailure {
	parts := slices.DeleteFunc([]string{message, detail, f.Pods.Report}, func(text string) bool { return text == "" })
	text := redact.Clip(strings.Join(parts, "; "), maxFailureMessage)
	return &awv1beta2.AppWrapperFailure{Time: metav1.NewTime(f.Now), Reason: reason, Message: text}
}
