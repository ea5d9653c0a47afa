// Package rules decides the next step of an AppWrapper. The rules of its phase or its deletion are evaluated in order on collected Facts,
// and the first that applies decides. All rules are pure functions and can be read as a specification.
package rules

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// action is an operation that must be executed before the rules are evaluated again with its outcome.
type action int

const (
	// Nothing requires no operation.
	Nothing action = iota
	// CreateComponents creates components that are not deployed, in order, up to the first error.
	CreateComponents
	// DeleteComponents deletes components and counts the remaining objects.
	DeleteComponents
	// ForceDeletion also sets a grace period of 0, and deletes pods after their owners.
	ForceDeletion
)

// Immediately is the delay of a reconcile that continues from the status just written.
const Immediately = time.Millisecond

// DeletionPollInterval is the requeue interval of a deletion that may progress without an event.
const DeletionPollInterval = 5 * time.Second

// Decision is the result of rules. The zero value changes nothing.
type Decision struct {
	Rule string
	// Action, unless Nothing, must be executed first. All other fields except Rule are then empty.
	Action action
	// NextPhase is the phase to enter; "" for none.
	NextPhase  awv1beta2.AppWrapperPhase
	Conditions []metav1.Condition
	// Announce sets components from NotCreated to Announced, and clears Completed.
	Announce bool
	// Defer keeps the status of created components in memory. The next decision without Defer stores the status.
	Defer bool
	// Retry is added to the number of retries.
	Retry          int32
	CompletionTime *time.Time
	Failure        *awv1beta2.AppWrapperFailure
	// RemoveFinalizer lets the deletion of the AppWrapper complete.
	RemoveFinalizer bool
	// RequeueAfter is the time until the next reconcile without an event; 0 for never.
	RequeueAfter time.Duration
}

// Rule is one rule of a phase. The first rule whose when returns true decides.
type Rule struct {
	name string
	when func(*Facts) bool
	then func(*Facts) Decision
}

// always is the when function of the last rule of a phase.
func always(*Facts) bool { return true }

func stay(*Facts) Decision { return Decision{} }

// transitionTo returns a transition to another phase.
func transitionTo(next awv1beta2.AppWrapperPhase, conditions ...metav1.Condition) Decision {
	return Decision{NextPhase: next, Conditions: conditions, RequeueAfter: Immediately}
}

// withConditions returns the decision with more conditions.
func (d Decision) withConditions(more ...[]metav1.Condition) Decision {
	d.Conditions = slices.Concat(d.Conditions, slices.Concat(more...))
	return d
}

// NewCondition returns a condition without a transition time.
func NewCondition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

func trueCondition(conditionType, reason, message string) metav1.Condition {
	return NewCondition(conditionType, metav1.ConditionTrue, reason, message)
}

func falseCondition(conditionType, reason, message string) metav1.Condition {
	return NewCondition(conditionType, metav1.ConditionFalse, reason, message)
}

// clearCondition returns the condition with status False if the stored one is True, and nothing otherwise.
func (f *Facts) clearCondition(conditionType, reason, message string) []metav1.Condition {
	if !f.isTrue(conditionType) {
		return nil
	}
	return []metav1.Condition{falseCondition(conditionType, reason, message)}
}

// ByPhase are the rules by phase.
var ByPhase = map[awv1beta2.AppWrapperPhase][]Rule{
	awv1beta2.PhaseEmpty:      whileNew,
	awv1beta2.PhaseSuspended:  whileSuspended,
	awv1beta2.PhaseResuming:   whileResuming,
	awv1beta2.PhaseRunning:    whileRunning,
	awv1beta2.PhaseResetting:  whileResetting,
	awv1beta2.PhaseSuspending: whileSuspending,
	awv1beta2.PhaseSucceeded:  whileSucceeded,
	awv1beta2.PhaseFailed:     whileFailed,
	// A restored AppWrapper may have this phase without a deletionTimestamp. Remaining objects are deleted, and the workload starts again.
	awv1beta2.PhaseTerminating: whileSuspending,
}

// Decide returns the decision of the first rule that applies. Every list ends with a rule that always applies.
func Decide(list []Rule, f *Facts) Decision {
	for _, r := range list {
		if r.when(f) {
			d := r.then(f)
			d.Rule = r.name
			return d
		}
	}
	return Decision{Rule: "unknown phase"} // a newer release may have more phases
}
