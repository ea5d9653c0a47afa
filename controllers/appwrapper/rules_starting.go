package appwrapper

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var whileNew = []rule{
	{"take it up", always, func(*facts) decision { return to(awv1beta2.PhaseSuspended) }},
}

var whileSuspended = []rule{
	{"kept suspended", suspended, stay},
	{"components were changed", componentsChanged, (*facts).failChanged},
	{"nobody has reviewed it", func(f *facts) bool { return f.unreviewed }, func(f *facts) decision {
		return f.fail(awv1beta2.ReasonNotReviewed, "no webhook of this operator has seen who created the AppWrapper, so nobody knows what it may create: "+
			"delete it and create it again", "")
	}},
	{"start", always, func(*facts) decision {
		const message = "Suspend is false"
		d := to(awv1beta2.PhaseResuming,
			set(awv1beta2.ConditionQuotaReserved, metav1.ConditionTrue, awv1beta2.ReasonResuming, message),
			set(awv1beta2.ConditionResourcesDeployed, metav1.ConditionTrue, awv1beta2.ReasonResuming, message),
			set(awv1beta2.ConditionPodsReady, metav1.ConditionFalse, awv1beta2.ReasonResuming, message),
			set(awv1beta2.ConditionUnhealthy, metav1.ConditionFalse, awv1beta2.ReasonResuming, message))
		d.announce = true
		return d
	}},
}

var whileResuming = []rule{
	{"suspend", suspended, toSuspending},
	{"components were changed", componentsChanged, (*facts).failChanged},
	{"announce what will be created", isFresh, func(*facts) decision { return decision{announce: true, again: immediately} }},
	{"run", allDeployed, func(*facts) decision { return to(awv1beta2.PhaseRunning) }},
	{"create", func(f *facts) bool { return f.created == nil }, func(*facts) decision { return decision{act: createComponents} }},
	{"run what was just created", func(f *facts) bool { return f.created.err == nil }, func(*facts) decision {
		return to(awv1beta2.PhaseRunning)
	}},
	{"creation failed for good", func(f *facts) bool { return f.created.fatal }, func(f *facts) decision {
		return f.fail(awv1beta2.ReasonCreateFailed, createFailed(f), "")
	}},
	{"try creation again", func(f *facts) bool { return f.until(f.admission()) > 0 }, func(f *facts) decision {
		return decision{again: f.backoff()}
	}},
	{"creation took too long", always, func(f *facts) decision {
		return f.resetOrFail(awv1beta2.ReasonCreateFailed, createFailed(f), "")
	}},
}

func suspended(f *facts) bool { return f.suspend }

func componentsChanged(f *facts) bool { return f.changed }

// failChanged ends a workload whose components are others than those that were reviewed and queued.
func (f *facts) failChanged() decision {
	return f.fail(awv1beta2.ReasonComponentsChanged, "components were added or removed after the AppWrapper was created: delete it and create it again", "")
}

func toSuspending(*facts) decision { return to(awv1beta2.PhaseSuspending) }

// isFresh: an object that is created before the status says so could be forgotten by a crash.
func isFresh(f *facts) bool {
	return f.created == nil && f.count(func(c componentFact) bool { return c.stage == fresh }) > 0
}

func allDeployed(f *facts) bool {
	return f.count(func(c componentFact) bool { return c.stage != deployed }) == 0
}

func createFailed(f *facts) string {
	return fmt.Sprintf("error creating components: %v", f.created.err)
}

// admission is when components must have been created.
func (f *facts) admission() time.Time {
	return f.since(awv1beta2.ConditionResourcesDeployed).Add(f.terms.AdmissionGrace)
}

// minRetry and maxRetry bound the pause before creation is tried again.
const minRetry, maxRetry = time.Second, 30 * time.Second

// backoff grows with the time that creation has taken already, and ends with the admission grace period.
func (f *facts) backoff() time.Duration {
	spent := f.now.Sub(f.since(awv1beta2.ConditionResourcesDeployed))
	return min(max(spent/2, minRetry), maxRetry, f.until(f.admission()))
}
