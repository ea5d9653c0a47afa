package appwrapper

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// facts is all that rules may look at. They are gathered before rules are asked, so that a decision depends on nothing else.
type facts struct {
	now        time.Time
	phase      awv1beta2.AppWrapperPhase
	suspend    bool
	retries    int32
	terms      Terms
	conditions []metav1.Condition
	completed  *metav1.Time
	components []componentFact
	pods       podFacts
	// changed: the components are not as many as the status tells of, so nothing in it is about them.
	changed bool
	// unreviewed: no webhook has seen the AppWrapper, which is to run for the first time.
	unreviewed bool
	// created and deleted are how an attempt of this pass ended; nil before it was made.
	created *creation
	deleted *deletion
	// recheck is when the next pass has to start because no watch may tell of a change; 0 for never.
	recheck time.Duration
}

// check asks for another pass after a time at the latest.
func (f *facts) check(after time.Duration) {
	if f.recheck == 0 || after < f.recheck {
		f.recheck = after
	}
}

// stage is how far the creation of a component has come, as its stored condition tells.
type stage int

const (
	// fresh: nothing was tried since the last clean-up. Nothing may be created before this is changed in the stored status.
	fresh stage = iota
	// announced: an attempt was stored; whether the object exists is not known.
	announced
	// errored: the API server refused the object.
	errored
	// deployed: the object was created.
	deployed
)

// outcome is what a component says about itself.
type outcome int

const (
	working outcome = iota
	succeeded
	failed
	// failing is a failure that its controller may still overcome.
	failing
)

// componentFact is what is known of one component.
type componentFact struct {
	title string // kind and name, for messages
	stage stage
	// since is when it got into its stage.
	since    time.Time
	replicas int
	// minReady is how many of them have to be there: some kinds scale by themselves.
	minReady int
	// judges: its kind reports completion by itself, so that its pods do not decide.
	judges bool
	// missing: it does not exist, is being deleted, or belongs to somebody else. Asked of the API server, not of the cache.
	missing bool
	outcome outcome
	// completed: its success is on record.
	completed bool
	// message is its own account of a failure.
	message string
}

// done says that the component has succeeded, now or earlier. It and its pods may be gone.
func (c componentFact) done() bool { return c.completed || c.outcome == succeeded }

// podFacts counts the pods of an AppWrapper, but for those of components that are done.
type podFacts struct {
	pending, running, succeeded, failed int
	// all is the number of labelled pods that exist, whatever they are, and active the number of those that have not ended:
	// they use the quota, also when they belong to a component that is done.
	all, active int
	// noExecute names the nodes that running pods should leave.
	noExecute []string
	// terminal: a container ended with an exit code after which there is no retry.
	terminal bool
	// report names containers with their last states, see report.
	report string
	// diagnosis says why pods do not run, if anything tells.
	diagnosis string
}

// creation is how an attempt to create components ended.
type creation struct {
	err   error
	fatal bool
}

// deletion is how far the clean-up is.
type deletion struct {
	// objects is the number of components that still exist.
	objects int
	// pods is the number of labelled pods that still exist; known only when no objects are left, or by force.
	pods int
	// blind: of what is left something cannot be watched.
	blind bool
	// trouble is the first error.
	trouble error
}

func (d *deletion) finished() bool { return d.objects == 0 && d.pods == 0 && d.trouble == nil }

// is tells whether a stored condition is True.
func (f *facts) is(condition string) bool { return meta.IsStatusConditionTrue(f.conditions, condition) }

// reason returns the reason of a stored condition, empty when there is none.
func (f *facts) reason(condition string) string {
	if c := meta.FindStatusCondition(f.conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// since returns when a stored condition got its status, and now when there is none.
func (f *facts) since(condition string) time.Time {
	if c := meta.FindStatusCondition(f.conditions, condition); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return f.now
}

// started is when everything was there that pods come from. The operator may have been away after it announced them.
func (f *facts) started() time.Time {
	last := f.since(awv1beta2.ConditionResourcesDeployed)
	for _, c := range f.components {
		if c.stage == deployed && c.since.After(last) {
			last = c.since
		}
	}
	return last
}

// until is how long it is to a deadline; 0 when it has passed.
func (f *facts) until(deadline time.Time) time.Duration { return max(0, deadline.Sub(f.now)) }

// expected is the number of pods that complete the workload, and needed the number that makes it ready.
func (f *facts) expected() int { return f.open(func(c componentFact) int { return c.replicas }) }

func (f *facts) needed() int { return f.open(func(c componentFact) int { return c.minReady }) }

// open sums over the components that are not done.
func (f *facts) open(number func(componentFact) int) int {
	sum := 0
	for _, c := range f.components {
		if !c.done() {
			sum += number(c)
		}
	}
	return sum
}

// count returns the number of components for which a question is answered with yes.
func (f *facts) count(question func(componentFact) bool) int {
	sum := 0
	for _, c := range f.components {
		if question(c) {
			sum++
		}
	}
	return sum
}

// completedAt is when the workload ended. What the original stored has no such field: a success cleared QuotaReserved then,
// and a failure came at the latest when the pause of its clean-up began.
func (f *facts) completedAt() time.Time {
	switch {
	case f.completed != nil:
		return f.completed.Time
	case f.phase == awv1beta2.PhaseSucceeded && !f.is(awv1beta2.ConditionQuotaReserved):
		return f.since(awv1beta2.ConditionQuotaReserved)
	case f.phase == awv1beta2.PhaseFailed && f.reason(awv1beta2.ConditionDeletingResources) == awv1beta2.ReasonDeletionPaused:
		return f.since(awv1beta2.ConditionDeletingResources)
	default:
		return f.now
	}
}
