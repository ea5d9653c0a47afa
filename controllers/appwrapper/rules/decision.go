// Package rules decides what happens to an AppWrapper next. Facts are gathered before, the rules of its phase are evaluated in order, and the
// first that applies decides: pure functions, which can be read like a specification.
package rules

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// act is what a decision wants to be done before it can be taken: the rules are evaluated again with the outcome.
type action int

const (
	// Nothing has to be done first.
	Nothing action = iota
	// CreateComponents creates those that are not deployed, in order, up to the first error.
	CreateComponents
	// DeleteComponents deletes what is there, and looks what is left.
	DeleteComponents
	// ForceDeletion does so too, and then deletes what is left without a grace period: pods when their owners are gone.
	ForceDeletion
)

// Immediately requeues; the next reconcile starts from the status just written.
const Immediately = time.Millisecond

// BlindPoll is the pause where no watch can tell of a change.
const UnwatchedInterval = 5 * time.Second

// Decision is what follows from facts. The zero value leaves everything as it is.
type Decision struct {
	Rule string
	// Act, when not nothing, makes this a question: nothing else of the decision counts.
	Action action
	// Next is the phase to go to; empty to stay.
	NextPhase  awv1beta2.AppWrapperPhase
	Conditions []metav1.Condition
	// Announce makes every component that is not deployed an announced one.
	Announce bool
	// Retry is added to the number of retries.
	Retry int32
	// Completed is when the workload ended.
	CompletionTime *time.Time
	Failure        *awv1beta2.AppWrapperFailure
	// Release lets the AppWrapper go.
	RemoveFinalizer bool
	// Again is when the next reconcile has to start if no event comes before; 0 for never.
	RequeueAfter time.Duration
}

// Rule is one line of a phase: the first whose question is answered with yes decides.
type Rule struct {
	name string
	when func(*Facts) bool
	then func(*Facts) Decision
}

// always closes the list of a phase.
func always(*Facts) bool { return true }

// stay leaves everything as it is.
func stay(*Facts) Decision { return Decision{} }

// to returns a step to another phase, with what comes along.
func transitionTo(next awv1beta2.AppWrapperPhase, conditions ...metav1.Condition) Decision {
	return Decision{NextPhase: next, Conditions: conditions, RequeueAfter: Immediately}
}

// and returns the decision with more conditions.
func (d Decision) withConditions(more ...[]metav1.Condition) Decision {
	d.Conditions = slices.Concat(d.Conditions, slices.Concat(more...))
	return d
}

// NewCondition returns a condition with its transition left to the status.
func NewCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func trueCondition(kind, reason, message string) metav1.Condition {
	return NewCondition(kind, metav1.ConditionTrue, reason, message)
}

func falseCondition(kind, reason, message string) metav1.Condition {
	return NewCondition(kind, metav1.ConditionFalse, reason, message)
}

// clear returns what makes a condition False if it is True, and nothing otherwise.
func (f *Facts) clearCondition(kind, reason, message string) []metav1.Condition {
	if !f.isTrue(kind) {
		return nil
	}
	return []metav1.Condition{falseCondition(kind, reason, message)}
}

// ByPhase are the lists of all phases.
var ByPhase = map[awv1beta2.AppWrapperPhase][]Rule{
	awv1beta2.PhaseEmpty:      whileNew,
	awv1beta2.PhaseSuspended:  whileSuspended,
	awv1beta2.PhaseResuming:   whileResuming,
	awv1beta2.PhaseRunning:    whileRunning,
	awv1beta2.PhaseResetting:  whileResetting,
	awv1beta2.PhaseSuspending: whileSuspending,
	awv1beta2.PhaseSucceeded:  whileSucceeded,
	awv1beta2.PhaseFailed:     whileFailed,
	// A status that was restored without the deletion that it tells of: what is left is cleared away, and it begins again.
	awv1beta2.PhaseTerminating: whileSuspending,
}

// Decide asks the rules of a list in order. Every list ends with a rule that always answers.
func Decide(list []Rule, f *Facts) Decision {
	for _, r := range list {
		if r.when(f) {
			d := r.then(f)
			d.Rule = r.name
			return d
		}
	}
	return Decision{Rule: "unknown phase"} // of a newer program: not ours to continue
}
