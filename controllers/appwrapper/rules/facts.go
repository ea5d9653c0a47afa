package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Facts is all that rules may look at. They are gathered before rules are evaluated, so that a decision depends on nothing else.
type Facts struct {
	Now            time.Time
	Phase          awv1beta2.AppWrapperPhase
	Suspend        bool
	Retries        int32
	Terms          Terms
	Conditions     []metav1.Condition
	CompletionTime *metav1.Time
	Components     []ComponentFact
	Pods           PodFacts
	// Changed: the components are not as many as the status tells of, so nothing in it is about them.
	ComponentsChanged bool
	// Unreviewed: no webhook has seen the AppWrapper, which is to run for the first time.
	Unreviewed bool
	// Created and Deleted are how an attempt of this reconcile ended; nil before it was made.
	Created *Creation
	Deleted *Deletion
	// Recheck is when the next reconcile has to start because no watch may tell of a change; 0 for never.
	RequeueAfter time.Duration
}

// CheckAfter asks for another reconcile after a time at the latest.
func (f *Facts) RequireRequeue(after time.Duration) {
	if f.RequeueAfter == 0 || after < f.RequeueAfter {
		f.RequeueAfter = after
	}
}

// Stage is how far the creation of a component has come, as its stored condition tells.
type Stage int

const (
	// Fresh says that nothing was tried since the last clean-up. Nothing may be created before this is changed in the stored status.
	NotCreated Stage = iota
	// Announced says that an attempt was stored; whether the object exists is not known.
	Announced
	// Errored says that the API server refused the object.
	Errored
	// Deployed says that the object was created.
	Deployed
)

// Outcome is what a component says about itself.
type Outcome int

const (
	inProgress Outcome = iota
	// Succeeded is final.
	Succeeded
	// Failed is final.
	Failed
	// Failing is a failure that its controller may still overcome.
	Failing
)

// ComponentFact is what is known of one component.
type ComponentFact struct {
	Title string // kind and name, for messages
	Stage Stage
	// Since is when it got into its stage.
	Since    time.Time
	Replicas int
	// MinReady is how many of them have to be there: some kinds scale by themselves.
	MinReady int
	// Judges: its kind reports completion by itself, so that its pods do not decide.
	ReportsCompletion bool
	// Missing: it does not exist, is being deleted, or has another owner. Read from the API server, not from the cache.
	Missing bool
	Outcome Outcome
	// Completed: its success is on record.
	Completed bool
	// Message is its own account of a failure.
	Message string
}

// Done says that the component has succeeded, now or earlier. It and its pods may be gone.
func (c ComponentFact) Done() bool { return c.Completed || c.Outcome == Succeeded }

// PodFacts counts the pods of an AppWrapper, but for those of components that are done.
type PodFacts struct {
	Pending, Running, Succeeded, Failed int
	// All is the number of labelled pods that exist, whatever they are, and active the number of those that have not ended:
	// they use the quota, also when they belong to a component that is done.
	All, Active int
	// NoExecute names the nodes that running pods should leave.
	NoExecute []string
	// Terminal: a container ended with an exit code after which there is no retry.
	Terminal bool
	// Report names containers with their last states, see report.
	Report string
	// Diagnosis says why pods do not run, if anything tells.
	Diagnosis string
}

// Creation is how an attempt to create components ended.
type Creation struct {
	Err   error
	Fatal bool
}

// Deletion is how far the clean-up is.
type Deletion struct {
	// Objects is the number of components that still exist.
	Objects int
	// Pods is the number of labelled pods that still exist; known only when no objects are left, or by force.
	Pods int
	// Blind: of what is left something cannot be watched.
	Unwatched bool
	// Trouble is the first error.
	Err error
}

// Finished reports that nothing is left, as far as it can be known.
func (d *Deletion) Finished() bool { return d.Objects == 0 && d.Pods == 0 && d.Err == nil }

// is tells whether a stored condition is True.
func (f *Facts) isTrue(condition string) bool {
	return meta.IsStatusConditionTrue(f.Conditions, condition)
}

// reason returns the reason of a stored condition, empty when there is none.
func (f *Facts) reason(condition string) string {
	if c := meta.FindStatusCondition(f.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// since returns when a stored condition got its status, and now when there is none.
func (f *Facts) since(condition string) time.Time {
	if c := meta.FindStatusCondition(f.Conditions, condition); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return f.Now
}

// started is when everything was there that pods come from. The operator may have been away after it announced them.
func (f *Facts) startTime() time.Time {
	last := f.since(awv1beta2.ConditionResourcesDeployed)
	for _, c := range f.Components {
		if c.Stage == Deployed && c.Since.After(last) {
			last = c.Since
		}
	}
	return last
}

// until is how long it is to a deadline; 0 when it has passed.
func (f *Facts) until(deadline time.Time) time.Duration { return max(0, deadline.Sub(f.Now)) }

// Expected is the number of pods that complete the workload, and needed the number that makes it ready.
func (f *Facts) Expected() int {
	return f.sumUnfinished(func(c ComponentFact) int { return c.Replicas })
}

func (f *Facts) minReady() int {
	return f.sumUnfinished(func(c ComponentFact) int { return c.MinReady })
}

// PodsMissingFor is how long pods of a running workload have been missing that have not been created; 0 when none are.
func (f *Facts) PodsMissingFor() time.Duration {
	if f.Phase != awv1beta2.PhaseRunning || f.Pods.All >= f.minReady() {
		return 0
	}
	return max(f.Now.Sub(f.startTime()), time.Millisecond)
}

// open sums over the components that are not done.
func (f *Facts) sumUnfinished(number func(ComponentFact) int) int {
	sum := 0
	for _, c := range f.Components {
		if !c.Done() {
			sum += number(c)
		}
	}
	return sum
}

// count returns the number of components for which a question is answered with yes.
func (f *Facts) count(question func(ComponentFact) bool) int {
	sum := 0
	for _, c := range f.Components {
		if question(c) {
			sum++
		}
	}
	return sum
}

// completedAt is when the workload ended. What the original stored has no such field: a success cleared QuotaReserved then,
// and a failure came at the latest when the pause of its clean-up began.
func (f *Facts) completionTime() time.Time {
	switch {
	case f.CompletionTime != nil:
		return f.CompletionTime.Time
	case f.Phase == awv1beta2.PhaseSucceeded && !f.isTrue(awv1beta2.ConditionQuotaReserved):
		return f.since(awv1beta2.ConditionQuotaReserved)
	case f.Phase == awv1beta2.PhaseFailed && f.reason(awv1beta2.ConditionDeletingResources) == awv1beta2.ReasonDeletionPaused:
		return f.since(awv1beta2.ConditionDeletingResources)
	default:
		return f.Now
	}
}
