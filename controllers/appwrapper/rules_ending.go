package appwrapper

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var whileResetting = []rule{
	{"suspend", suspended, toSuspending},
	{"clean up", mayUseQuota, func(f *facts) decision {
		return f.cleanUp(func(f *facts) decision {
			return decision{again: immediately, conditions: append(f.unready(), set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionFalse,
				awv1beta2.ReasonResetting, "Resources deleted for resetting AppWrapper"))}
		}, f.unready()...)
	}},
	{"pause", func(f *facts) bool { return f.until(f.pauseEnd()) > 0 }, func(f *facts) decision {
		return decision{conditions: f.unready(), again: f.until(f.pauseEnd())}
	}},
	{"components were changed", componentsChanged, (*facts).failChanged},
	{"resume", always, func(f *facts) decision {
		const message = "Reset complete; resuming"
		d := to(awv1beta2.PhaseResuming,
			set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionTrue, awv1beta2.ReasonResuming, message))
		d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming, message)...)
		d.conditions = append(d.conditions, f.unready()...)
		d.announce = true
		return d
	}},
}

var whileSuspending = []rule{
	{"clean up", mayUseQuota, func(f *facts) decision { return f.cleanUp(toSuspended) }},
	{"suspended", always, toSuspended},
}

var whileSucceeded = []rule{
	{"note the end", (*facts).endUnknown, (*facts).noteEnd},
	{"cleaned up", func(f *facts) bool { return !f.is(awv1beta2.ConditionResourcesDeployed) }, stay},
	{"keep for a while", func(f *facts) bool { return !f.deleting() && f.until(f.expiry()) > 0 }, func(f *facts) decision {
		return decision{again: f.until(f.expiry())}
	}},
	{"clean up", always, func(f *facts) decision {
		return f.cleanUp(func(f *facts) decision {
			return decision{conditions: []metav1.Condition{set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionFalse, awv1beta2.ReasonSucceeded,
				fmt.Sprintf("Time to live after success of %s expired", f.terms.SuccessTTL))}}
		})
	}},
}

var whileFailed = []rule{
	{"note the end", (*facts).endUnknown, (*facts).noteEnd},
	{"cleaned up", func(f *facts) bool { return !mayUseQuota(f) && !f.is(awv1beta2.ConditionQuotaReserved) }, func(f *facts) decision {
		return decision{conditions: f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")}
	}},
	{"keep for a while", func(f *facts) bool { return !f.deleting() && !f.suspend && f.until(f.keptUntil()) > 0 }, func(f *facts) decision {
		paused := set(awv1beta2.ConditionDeletingResources, metav1.ConditionFalse, awv1beta2.ReasonDeletionPaused,
			fmt.Sprintf("%s has value %s", awv1beta2.AnnotationDeletionOnFailure, f.terms.DeletionOnFailure))
		return decision{
			conditions: append(f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, ""), paused),
			again:      f.until(f.keptUntil()),
		}
	}},
	{"clean up", always, func(f *facts) decision {
		return f.cleanUp(func(f *facts) decision {
			message := "Resources deleted for failed AppWrapper"
			if f.terms.DeletionOnFailure > 0 && f.suspend {
				message = "Kueue forced resource deletion by suspending AppWrapper"
			}
			return decision{conditions: []metav1.Condition{
				set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionFalse, awv1beta2.ReasonFailed, message),
				set(awv1beta2.ConditionQuotaReserved, metav1.ConditionFalse, awv1beta2.ReasonFailed, "No resources deployed"),
			}}
		}, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")...)
	}},
}

// whileTerminating holds for every AppWrapper that is being deleted, whatever its phase.
var whileTerminating = []rule{
	{"clean up", mayUseQuota, func(f *facts) decision {
		d := f.cleanUp(released)
		if f.deleted != nil && !f.deleted.finished() && f.phase != awv1beta2.PhaseTerminating {
			d.next = awv1beta2.PhaseTerminating
		}
		return d
	}},
	{"give back the quota", func(f *facts) bool { return f.is(awv1beta2.ConditionQuotaReserved) }, released},
	{"let go", always, func(*facts) decision { return decision{release: true} }},
}

func released(f *facts) decision {
	d := decision{again: immediately}
	d.conditions = f.clear(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonTerminating, "Resources successfully deleted")
	d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonTerminating, "No resources deployed")...)
	return d
}

func toSuspended(f *facts) decision {
	const message = "Suspend is true"
	d := to(awv1beta2.PhaseSuspended,
		set(awv1beta2.ConditionQuotaReserved, metav1.ConditionFalse, awv1beta2.ReasonSuspended, message),
		set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionFalse, awv1beta2.ReasonSuspended, message))
	d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonSuspended, "")...)
	d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonSuspended, "")...)
	return d
}

// mayUseQuota: ResourcesDeployed is True, or labelled pods exist. Quota is released only when it is false.
func mayUseQuota(f *facts) bool { return f.is(awv1beta2.ConditionResourcesDeployed) || f.pods.all > 0 }

// deleting: clean-up has begun, and is not interrupted any more.
func (f *facts) deleting() bool { return f.is(awv1beta2.ConditionDeletingResources) }

// cleanUp runs the deletion routine and continues with done when nothing is left. Meanwhile the conditions of its own and
// those given hold.
func (f *facts) cleanUp(done func(*facts) decision, meanwhile ...metav1.Condition) decision {
	force := f.now // deletion begins now
	if f.deleting() {
		force = f.since(awv1beta2.ConditionDeletingResources)
	}
	remaining := f.until(force.Add(f.terms.ForcefulDeletion))
	switch {
	case f.deleted == nil && remaining == 0 && f.deleting():
		return decision{act: forceDeletion}
	case f.deleted == nil:
		return decision{act: deleteComponents}
	case f.deleted.finished():
		d := done(f)
		d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionDeletingResources, awv1beta2.ReasonDeletionComplete, "")...)
		return d
	}
	message := ""
	if f.deleted.trouble != nil {
		message = f.deleted.trouble.Error()
	}
	again := remaining
	if f.deleted.blind || f.deleted.trouble != nil || remaining == 0 {
		again = min(max(remaining, immediately), blindPoll)
	}
	if remaining == 0 && f.deleting() { // what was forced a moment ago needs some time
		again = blindPoll
	}
	return decision{again: again, conditions: append(meanwhile,
		set(awv1beta2.ConditionDeletingResources, metav1.ConditionTrue, awv1beta2.ReasonDeletionInitiated, message))}
}

// unready clears PodsReady, also of the memory of a dip that ended with the reset.
func (f *facts) unready() []metav1.Condition {
	if f.is(awv1beta2.ConditionPodsReady) || f.reason(awv1beta2.ConditionPodsReady) == awv1beta2.ReasonInsufficientPods {
		return []metav1.Condition{set(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonResetting, "")}
	}
	return nil
}

// pauseEnd is when a reset workload may start again: the pause counts from the failure.
func (f *facts) pauseEnd() time.Time {
	if !f.is(awv1beta2.ConditionUnhealthy) {
		return f.now
	}
	return f.since(awv1beta2.ConditionUnhealthy).Add(f.terms.RetryPause)
}

// expiry is when the objects of a successful workload go.
func (f *facts) expiry() time.Time { return f.completedAt().Add(f.terms.SuccessTTL) }

// keptUntil is when the objects of a failed workload go.
func (f *facts) keptUntil() time.Time { return f.completedAt().Add(f.terms.DeletionOnFailure) }

// endUnknown: the original, which stored it, had no field for the end.
func (f *facts) endUnknown() bool { return f.completed == nil }

func (f *facts) noteEnd() decision {
	at := f.completedAt()
	return decision{completed: &at, again: immediately}
}
