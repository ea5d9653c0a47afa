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
	{"clean up", mayUseQuota, func(f *Facts) Decision {
		return f.cleanUp(func(f *Facts) Decision {
			return Decision{Again: Immediately, Conditions: append(f.unready(),
				no(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonResetting, "Resources deleted for resetting AppWrapper"))}
		}, f.unready()...)
	}},
	{"pause", func(f *Facts) bool { return f.until(f.pauseEnd()) > 0 }, func(f *Facts) Decision {
		return Decision{Conditions: f.unready(), Again: f.until(f.pauseEnd())}
	}},
	{"components were changed", componentsChanged, (*Facts).failChanged},
	{"resume", always, func(f *Facts) Decision {
		const message = "Reset complete; resuming"
		d := to(awv1beta2.PhaseResuming, yes(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonResuming, message)).
			and(f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming, message), f.unready())
		d.Announce = true
		return d
	}},
}

var whileSuspending = []Rule{
	{"clean up", mayUseQuota, func(f *Facts) Decision { return f.cleanUp(toSuspended) }},
	{"suspended", always, toSuspended},
}

var whileSucceeded = []Rule{
	{"note the end", (*Facts).endUnknown, (*Facts).noteEnd},
	{"cleaned up", func(f *Facts) bool { return !f.is(awv1beta2.ConditionResourcesDeployed) }, stay},
	{"keep for a while", func(f *Facts) bool { return !f.deleting() && f.until(f.expiry()) > 0 }, func(f *Facts) Decision {
		return Decision{Again: f.until(f.expiry())}
	}},
	{"clean up", always, func(f *Facts) Decision {
		return f.cleanUp(func(f *Facts) Decision {
			return Decision{Conditions: []metav1.Condition{no(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSucceeded,
				fmt.Sprintf("Time to live after success of %s expired", f.Terms.SuccessTTL))}}
		})
	}},
}

var whileFailed = []Rule{
	{"note the end", (*Facts).endUnknown, (*Facts).noteEnd},
	{"cleaned up", func(f *Facts) bool { return !mayUseQuota(f) && !f.is(awv1beta2.ConditionQuotaReserved) }, func(f *Facts) Decision {
		return Decision{Conditions: f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")}
	}},
	{"keep for a while", func(f *Facts) bool { return !f.deleting() && !f.Suspend && f.until(f.keptUntil()) > 0 }, func(f *Facts) Decision {
		paused := no(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionPaused,
			fmt.Sprintf("%s has value %s", awv1beta2.AnnotationDeletionOnFailure, f.Terms.DeletionOnFailure))
		return Decision{Again: f.until(f.keptUntil()), Conditions: append(f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""), paused)}
	}},
	{"clean up", always, func(f *Facts) Decision {
		return f.cleanUp(func(f *Facts) Decision {
			message := "Resources deleted for failed AppWrapper"
			if f.Terms.DeletionOnFailure > 0 && f.Suspend {
				message = "Kueue forced resource deletion by suspending AppWrapper"
			}
			return Decision{Conditions: []metav1.Condition{
				no(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonFailed, message),
				no(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonFailed, "No resources deployed"),
			}}
		}, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")...)
	}},
}

// WhileTerminating holds for every AppWrapper that is being deleted, whatever its phase.
var WhileTerminating = []Rule{
	{"clean up", mayUseQuota, func(f *Facts) Decision {
		d := f.cleanUp(released)
		if f.Deleted != nil && !f.Deleted.Finished() && f.Phase != awv1beta2.PhaseTerminating {
			d.Next = awv1beta2.PhaseTerminating
		}
		return d
	}},
	{"give back the quota", func(f *Facts) bool { return f.is(awv1beta2.ConditionQuotaReserved) }, released},
	{"let go", always, func(*Facts) Decision { return Decision{Release: true} }},
}

func released(f *Facts) Decision {
	return Decision{Again: Immediately}.and(
		f.clear(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonTerminating, "Resources successfully deleted"),
		f.clear(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonTerminating, "No resources deployed"))
}

func toSuspended(f *Facts) Decision {
	const message = "Suspend is true"
	return to(awv1beta2.PhaseSuspended,
		no(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonSuspended, message),
		no(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonSuspended, message),
	).and(f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSuspended, ""), f.forgetAttempts(awv1beta2.ReasonSuspended, ""), f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonSuspended, ""))
}

// mayUseQuota: ResourcesDeployed is True, or labelled pods exist. Quota is released only when it is false.
func mayUseQuota(f *Facts) bool { return f.is(awv1beta2.ConditionResourcesDeployed) || f.Pods.All > 0 }

// deleting: clean-up has begun, and is not interrupted any more.
func (f *Facts) deleting() bool { return f.is(awv1beta2.ConditionDeletingResources) }

// cleanUp runs the deletion routine and continues with done when nothing is left. Meanwhile the conditions of its own and
// those given hold.
func (f *Facts) cleanUp(done func(*Facts) Decision, meanwhile ...metav1.Condition) Decision {
	force := f.Now // deletion begins now
	if f.deleting() {
		force = f.since(awv1beta2.ConditionDeletingResources)
	}
	remaining := f.until(force.Add(f.Terms.ForcefulDeletion))
	switch {
	case f.Deleted == nil && remaining == 0 && f.deleting():
		return Decision{Act: ForceDeletion}
	case f.Deleted == nil:
		return Decision{Act: DeleteComponents}
	case f.Deleted.Finished():
		return done(f).and(f.clear(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionComplete, ""))
	}
	message := ""
	if f.Deleted.Trouble != nil {
		message = f.Deleted.Trouble.Error()
	}
	again := remaining
	if f.Deleted.Blind || f.Deleted.Trouble != nil || remaining == 0 {
		again = min(max(remaining, Immediately), BlindPoll)
	}
	if remaining == 0 && f.deleting() { // what was forced a moment ago needs some time
		again = BlindPoll
	}
	return Decision{Again: again, Conditions: append(meanwhile,
		yes(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionInitiated, message))}
}

// unready clears PodsReady, also of the memory of a dip that ended with the reset.
func (f *Facts) unready() []metav1.Condition {
	if f.is(awv1beta2.ConditionPodsReady) || f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods {
		return []metav1.Condition{no(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResetting, "")}
	}
	return f.forgetAttempts(awv1beta2.ReasonResetting, "")
}

// pauseEnd is when a reset workload may start again: the pause counts from the failure.
func (f *Facts) pauseEnd() time.Time {
	if !f.is(awv1beta2.ConditionUnhealthy) {
		return f.Now
	}
	return f.since(awv1beta2.ConditionUnhealthy).Add(f.Terms.RetryPause)
}

// expiry is when the objects of a successful workload go.
func (f *Facts) expiry() time.Time { return f.completedAt().Add(f.Terms.SuccessTTL) }

// keptUntil is when the objects of a failed workload go.
func (f *Facts) keptUntil() time.Time { return f.completedAt().Add(f.Terms.DeletionOnFailure) }

// endUnknown: the original, which stored it, had no field for the end.
func (f *Facts) endUnknown() bool { return f.Completed == nil }

func (f *Facts) noteEnd() Decision {
	at := f.completedAt()
	return Decision{Completed: &at, Again: Immediately}
}

// maxFailure bounds the message about a failure in bytes.
const maxFailure = 1024

// resetOrFail tries again and counts it, while the limit allows it. An exit code may forbid it.
func (f *Facts) resetOrFail(reason, message, detail string) Decision {
	if f.Pods.Terminal {
		return f.fail(reason, message, detail)
	}
	return f.resetWithin(reason, message, detail, 1)
}

func (f *Facts) resetWithin(reason, message, detail string, increment int32) Decision {
	if f.Retries >= f.Terms.RetryLimit {
		return f.fail(reason, message, detail)
	}
	d := to(awv1beta2.PhaseResetting, yes(awv1beta2.ConditionUnhealthy, reason, message))
	d.Retry, d.Failure = increment, f.account(reason, message, detail)
	return d
}

// fail ends the workload.
func (f *Facts) fail(reason, message, detail string) Decision {
	d := to(awv1beta2.PhaseFailed, yes(awv1beta2.ConditionUnhealthy, reason, message)).
		and(f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""))
	d.Completed, d.Failure = &f.Now, f.account(reason, message, detail)
	return d
}

// account keeps what is known of a failure before its remains are deleted.
func (f *Facts) account(reason, message, detail string) *awv1beta2.AppWrapperFailure {
	known := slices.DeleteFunc([]string{message, detail, f.Pods.Report}, func(text string) bool { return text == "" })
	text := conditions.Clip(strings.Join(known, "; "), maxFailure)
	return &awv1beta2.AppWrapperFailure{Time: metav1.NewTime(f.Now), Reason: reason, Message: text}
}
