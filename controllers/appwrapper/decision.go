package appwrapper

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// act is what a decision wants to be done before it can be taken: the rules are asked again with the outcome.
type act int

const (
	nothing act = iota
	// createComponents creates those that are not deployed, in order, up to the first error.
	createComponents
	// deleteComponents deletes what is there, and looks what is left.
	deleteComponents
	// forceDeletion does so too, and then deletes what is left without a grace period: pods when their owners are gone.
	forceDeletion
)

// immediately requeues; the next pass starts from the status just written.
const immediately = time.Millisecond

// blindPoll is the pause where no watch can tell of a change.
const blindPoll = 5 * time.Second

// decision is what follows from facts. The zero value leaves everything as it is.
type decision struct {
	rule string
	// act, when not nothing, makes this a question: nothing else of the decision counts.
	act act
	// next is the phase to go to; empty to stay.
	next       awv1beta2.AppWrapperPhase
	conditions []metav1.Condition
	// announce makes every component that is not deployed an announced one.
	announce bool
	// retry is added to the number of retries.
	retry int32
	// completed is when the workload ended.
	completed *time.Time
	failure   *awv1beta2.AppWrapperFailure
	// release lets the AppWrapper go.
	release bool
	// again is when the next pass has to start if no event comes before; 0 for never.
	again time.Duration
}

// rule is one line of a phase: the first whose question is answered with yes decides.
type rule struct {
	name string
	when func(*facts) bool
	then func(*facts) decision
}

// always closes the list of a phase.
func always(*facts) bool { return true }

// stay leaves everything as it is.
func stay(*facts) decision { return decision{} }

// to returns a step to another phase, with what comes along.
func to(next awv1beta2.AppWrapperPhase, conditions ...metav1.Condition) decision {
	return decision{next: next, conditions: conditions, again: immediately}
}

// set returns a condition with its transition left to the status.
func set(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// clear returns what makes a condition False if it is True, and nothing otherwise.
func (f *facts) clear(kind, reason, message string) []metav1.Condition {
	if !f.is(kind) {
		return nil
	}
	return []metav1.Condition{set(kind, metav1.ConditionFalse, reason, message)}
}

// rules are the lists of all phases.
var rules = map[awv1beta2.AppWrapperPhase][]rule{
	awv1beta2.PhaseEmpty:      whileNew,
	awv1beta2.PhaseSuspended:  whileSuspended,
	awv1beta2.PhaseResuming:   whileResuming,
	awv1beta2.PhaseRunning:    whileRunning,
	awv1beta2.PhaseResetting:  whileResetting,
	awv1beta2.PhaseSuspending: whileSuspending,
	awv1beta2.PhaseSucceeded:  whileSucceeded,
	awv1beta2.PhaseFailed:     whileFailed,
	// A status that was restored without the deletion that it tells of: what is left is cleared away, and it begins anew.
	awv1beta2.PhaseTerminating: whileSuspending,
}

// decide asks the rules of a list in order. Every list ends with a rule that always answers.
func decide(list []rule, f *facts) decision {
	for _, r := range list {
		if r.when(f) {
			d := r.then(f)
			d.rule = r.name
			return d
		}
	}
	return decision{rule: "unknown phase"} // of a newer program: not ours to continue
}
