package rules

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var whileNew = append([]Rule{
	{"initialize", suspended, func(*Facts) Decision { return transitionTo(awv1beta2.PhaseSuspended) }},
}, whileSuspended[1:]...)

var whileSuspended = []Rule{
	{"stay suspended", suspended, stay},
	{"pod sets are unknown", func(f *Facts) bool { return f.PodSetsUnknown != nil }, func(f *Facts) Decision {
		return f.fail(awv1beta2.ReasonCreateFailed, fmt.Sprintf("%v; correct the template in a new AppWrapper", f.PodSetsUnknown), "")
	}},
	{"components were changed", componentsChanged, (*Facts).failComponentsChanged},
	{"not reviewed", func(f *Facts) bool { return f.Unreviewed }, func(f *Facts) Decision {
		return f.fail(awv1beta2.ReasonNotReviewed, "the creator of the AppWrapper is unknown, because no webhook of this operator was running when it was created: "+
			"delete it and create it again", "")
	}},
	{"start", always, func(*Facts) Decision {
		const message = "Suspend is false"
		d := transitionTo(awv1beta2.PhaseResuming,
			trueCondition(awv1beta2.ConditionQuotaReserved, awv1beta2.ReasonResuming, message),
			trueCondition(awv1beta2.ConditionResourcesDeployed, awv1beta2.ReasonResuming, message),
			falseCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResuming, message),
			falseCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming, message))
		d.Announce = true
		return d
	}},
}

var whileResuming = []Rule{
	{"suspend", suspended, toSuspending},
	{"components were changed", componentsChanged, (*Facts).failComponentsChanged},
	{"announce components", needsAnnouncement, func(*Facts) Decision { return Decision{Announce: true, RequeueAfter: Immediately} }},
	{"wait for the first pods", func(f *Facts) bool {
		return allCreated(f) && !f.enoughPods() && (f.Created != nil || f.until(f.startTime().Add(settleTime)) > 0)
	}, func(*Facts) Decision { return Decision{Defer: true, RequeueAfter: settleTime} }},
	{"run", allCreated, (*Facts).run},
	{"create", func(f *Facts) bool { return f.Created == nil }, func(*Facts) Decision { return Decision{Action: CreateComponents} }},
	{"creation failed permanently", func(f *Facts) bool { return f.Created.Terminal }, func(f *Facts) Decision {
		return f.fail(awv1beta2.ReasonCreateFailed, createFailed(f), "")
	}},
	{"retry creation", func(f *Facts) bool { return f.until(f.admissionDeadline()) > 0 }, func(f *Facts) Decision {
		return Decision{RequeueAfter: f.backoff()}.withConditions([]metav1.Condition{falseCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonCreateFailed, createFailed(f))})
	}},
	{"creation timed out", always, func(f *Facts) Decision {
		return f.retryOrFail(awv1beta2.ReasonCreateFailed, createFailed(f), "")
	}},
}

func suspended(f *Facts) bool { return f.Suspend }

func componentsChanged(f *Facts) bool { return f.ComponentsChanged }

// failComponentsChanged fails a workload whose components differ from the reviewed and queued ones.
func (f *Facts) failComponentsChanged() Decision {
	return f.fail(awv1beta2.ReasonComponentsChanged, "components were added or removed after the AppWrapper was created: delete it and create it again", "")
}

func toSuspending(*Facts) Decision { return transitionTo(awv1beta2.PhaseSuspending) }

// needsAnnouncement reports whether the status must announce components before their objects are created. Otherwise the status would lack
// an object that was created before a crash.
func needsAnnouncement(f *Facts) bool {
	return f.Created == nil && f.count(func(c ComponentFact) bool { return c.Stage == NotCreated }) > 0
}

// allCreated reports whether all components were created, in this reconcile or before.
func allCreated(f *Facts) bool {
	return f.Created != nil && f.Created.Err == nil || f.count(func(c ComponentFact) bool { return c.Stage != Deployed }) == 0
}

// settleTime is how long Resuming waits for the first pods: most workloads then need a single status update for Running and PodsReady.
const settleTime = time.Second

func (f *Facts) run() Decision {
	d := transitionTo(awv1beta2.PhaseRunning).withConditions(f.clearCreateFailed(awv1beta2.ReasonResuming, "The components have been created"))
	if f.enoughPods() && !f.isUnhealthy() {
		return d.withConditions(f.podsReady())
	}
	return d
}

// clearCreateFailed replaces the reason CreateFailed in PodsReady.
func (f *Facts) clearCreateFailed(reason, message string) []metav1.Condition {
	if f.reason(awv1beta2.ConditionPodsReady) != awv1beta2.ReasonCreateFailed {
		return nil
	}
	return []metav1.Condition{falseCondition(awv1beta2.ConditionPodsReady, reason, message)}
}

func createFailed(f *Facts) string {
	return fmt.Sprintf("error creating components: %v", f.Created.Err)
}

// admissionDeadline returns when components must have been created.
func (f *Facts) admissionDeadline() time.Time {
	return f.since(awv1beta2.ConditionResourcesDeployed).Add(f.Terms.AdmissionGrace)
}

// Bounds of the delay of a retried creation.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// backoff returns the delay of the next attempt: half the time since the first one, between minRetry and maxRetry, and at most until the end of
// the admission grace period.
func (f *Facts) backoff() time.Duration {
	elapsed := f.Now.Sub(f.since(awv1beta2.ConditionResourcesDeployed))
	return min(max(elapsed/2, minRetry), maxRetry, f.until(f.admissionDeadline()))
}
