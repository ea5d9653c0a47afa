package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Facts are the inputs of rules. They are collected before the rules are evaluated, and decisions depend on nothing else.
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
	// ComponentsChanged reports whether the numbers of components in spec and status differ. The status is then invalid.
	ComponentsChanged bool
	// PodSetsUnknown is the error if an AppWrapper that never started has a component whose pods cannot be counted.
	PodSetsUnknown error
	// Unreviewed reports whether the AppWrapper has never run, and no webhook has processed it; false if no review is configured.
	Unreviewed bool
	// Created and Deleted are the outcome of an action in this reconcile; nil before it.
	Created *Creation
	Deleted *Deletion
	// RequeueAfter is the time until the next reconcile for changes that may send no event; 0 for never.
	RequeueAfter time.Duration
}

// RequireRequeue requests another reconcile after the given time at the latest.
func (f *Facts) RequireRequeue(after time.Duration) {
	if f.RequeueAfter == 0 || after < f.RequeueAfter {
		f.RequeueAfter = after
	}
}

// Stage is the progress of the creation of a component, as stored in its condition.
type Stage int

const (
	// NotCreated is the state without an attempt since the last deletion. The status must change to Announced before the creation.
	NotCreated Stage = iota
	// Announced is the state of a component whose object may exist.
	Announced
	// Errored is the state of a component whose creation certainly failed.
	Errored
	// Deployed is the state of a component whose object was created.
	Deployed
)

// Outcome is the state that a component reports.
type Outcome int

const (
	inProgress Outcome = iota
	// Succeeded is terminal.
	Succeeded
	// Failed is terminal.
	Failed
	// Failing is a failure that the controller of the component may recover from.
	Failing
)

// ComponentFact is the observed state of one component.
type ComponentFact struct {
	Title string // kind and name of the object, for messages
	Stage Stage
	// Since is the transition time of Stage.
	Since    time.Time
	Replicas int
	// MinReady is the number of replicas that must be ready. It may be below Replicas, see podset.MinReady.
	MinReady int
	// ReportsCompletion reports whether the kind reports success in its status.
	ReportsCompletion bool
	// Missing reports whether the object does not exist, is terminating or has another owner, according to the API server, or the status of
	// the component names no object.
	Missing bool
	Outcome Outcome
	// Completed reports whether the success of the component is stored in the status.
	Completed bool
	// Message is the reported reason of a failure.
	Message string
}

// Done reports whether the component has succeeded. Its object and pods may no longer exist.
func (c ComponentFact) Done() bool { return c.Completed || c.Outcome == Succeeded }

// PodFacts counts the pods of an AppWrapper, except pods that are older than the AppWrapper and those of components that are done. Running
// does not include terminating pods.
type PodFacts struct {
	Pending, Running, Succeeded, Failed int
	// All is the number of labeled pods in any state. Active is the number of labeled pods that have not finished. Both include the
	// excepted pods, because these use quota.
	All, Active int
	// NoExecute are the names of nodes from which running pods should be evicted.
	NoExecute []string
	// Terminal reports whether a container of a failed pod terminated with an exit code after which no retry is allowed.
	Terminal bool
	// Report lists failed containers and pods.
	Report string
	// Diagnosis is the reason why pods do not run, if known.
	Diagnosis string
}

// Creation is the outcome of CreateComponents.
type Creation struct {
	Err      error
	Terminal bool
}

// Deletion is the progress of DeleteComponents.
type Deletion struct {
	// Objects is the number of objects that still exist, and of components whose deletion failed.
	Objects int
	// Pods is above 0 if labeled pods still exist; set only if Objects is 0, or if a forced deletion has reached all objects.
	Pods int
	// Unwatched reports whether a remaining object is not watched.
	Unwatched bool
	// Err joins the errors.
	Err error
}

// Finished reports whether no object and no pod remains and no error occurred.
func (d *Deletion) Finished() bool { return d.Objects == 0 && d.Pods == 0 && d.Err == nil }

// isTrue reports whether a stored condition is True.
func (f *Facts) isTrue(condition string) bool {
	return meta.IsStatusConditionTrue(f.Conditions, condition)
}

// reason returns the reason of a stored condition, or "".
func (f *Facts) reason(condition string) string {
	if c := meta.FindStatusCondition(f.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// since returns the transition time of a stored condition, or Now.
func (f *Facts) since(condition string) time.Time {
	if c := meta.FindStatusCondition(f.Conditions, condition); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return f.Now
}

// startTime returns when the last component was deployed, which may be long after ResourcesDeployed if the operator was not running.
func (f *Facts) startTime() time.Time {
	last := f.since(awv1beta2.ConditionResourcesDeployed)
	for _, c := range f.Components {
		if c.Stage == Deployed && c.Since.After(last) {
			last = c.Since
		}
	}
	return last
}

// until returns the time until a deadline; 0 after it.
func (f *Facts) until(deadline time.Time) time.Duration { return max(0, deadline.Sub(f.Now)) }

// Expected returns the number of pods of the components that are not done. minReady returns how many of these pods must be ready.
func (f *Facts) Expected() int {
	return f.sumUnfinished(func(c ComponentFact) int { return c.Replicas })
}

func (f *Facts) minReady() int {
	return f.sumUnfinished(func(c ComponentFact) int { return c.MinReady })
}

// PodsMissingFor returns the time since the start of a running workload if it has fewer pods than it needs, or else 0.
func (f *Facts) PodsMissingFor() time.Duration {
	if f.Phase != awv1beta2.PhaseRunning || f.Pods.All >= f.minReady() {
		return 0
	}
	return max(f.Now.Sub(f.startTime()), time.Millisecond)
}

// sumUnfinished returns a sum over the components that are not done.
func (f *Facts) sumUnfinished(value func(ComponentFact) int) int {
	sum := 0
	for _, c := range f.Components {
		if !c.Done() {
			sum += value(c)
		}
	}
	return sum
}

// count returns the number of components that match.
func (f *Facts) count(matches func(ComponentFact) bool) int {
	sum := 0
	for _, c := range f.Components {
		if matches(c) {
			sum++
		}
	}
	return sum
}

// completionTime returns when the workload completed. The CodeFlare operator stored no such time: it is then the transition time of
// QuotaReserved after a success, of DeletingResources if the deletion after a failure is delayed, or else Now.
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
