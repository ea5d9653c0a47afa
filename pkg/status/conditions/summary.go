package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types that kstatus evaluates (Flux, Argo CD, helm --wait). They are derived from the other conditions and repeat their reasons
// and messages.
const (
	// Ready is True while the object matches its spec and its ready condition is True.
	Ready = "Ready"
	// Reconciling is True while the object may become ready without a user, and absent otherwise.
	Reconciling = "Reconciling"
	// Stalled is True while the object cannot become ready before a user acts, and absent otherwise.
	Stalled = "Stalled"
	// NotYetKnown is the reason of Ready while the ready condition is absent.
	NotYetKnown = "NotYetKnown"
	// progressing is set by some components while they, or Kubernetes, roll out the current generation.
	progressing = "Progressing"
)

// Pending is the reason why an object does not match its spec yet, even if an earlier version is serving.
type Pending struct{ Reason, Message string }

// SummaryOptions are the inputs of a summary besides the conditions.
type SummaryOptions struct {
	// ReadyCondition is the type of the condition from which Ready is derived. If it is Ready itself, only Stalled is derived.
	ReadyCondition string
	// InformationalConditions are types, or reasons, of conditions that may report a problem without making the object unready.
	InformationalConditions []string
	// Pending is nil if the object matches its spec.
	Pending *Pending
	// Stalled is true if the reconcile waits for an action of the user.
	Stalled bool
}

// Summary returns Ready, Reconciling and Stalled; those without a status must be removed. If Stalled is already True in the list, it is
// kept.
func Summary(list []metav1.Condition, o SummaryOptions) []metav1.Condition {
	ready, inProgress := deriveReady(list, o)
	stalled, reconciling := metav1.Condition{Type: Stalled}, metav1.Condition{Type: Reconciling}
	if c := meta.FindStatusCondition(list, Stalled); o.Stalled {
		stalled = copyAs(Stalled, metav1.ConditionTrue, ready)
	} else if c != nil && c.Status == metav1.ConditionTrue {
		stalled = *c
	}
	if inProgress && stalled.Status == "" {
		reconciling = copyAs(Reconciling, metav1.ConditionTrue, ready)
	}
	if o.ReadyCondition == Ready {
		return []metav1.Condition{stalled}
	}
	return []metav1.Condition{ready, reconciling, stalled}
}

// Summarize sets and removes conditions according to their summary. Stalled is derived from SummaryOptions.Stalled alone.
func Summarize(ref *[]metav1.Condition, generation int64, o SummaryOptions) {
	if !o.Stalled {
		Remove(ref, Stalled)
	}
	for _, c := range Summary(*ref, o) {
		if c.Status == "" {
			Remove(ref, c.Type)
			continue
		}
		Set(ref, c.Type, c.Status, c.Reason, c.Message, generation)
	}
}

// deriveReady returns Ready, and whether the object may become ready without a user.
func deriveReady(list []metav1.Condition, o SummaryOptions) (ready metav1.Condition, reconciling bool) {
	readyCondition := meta.FindStatusCondition(list, o.ReadyCondition)
	stalled := meta.FindStatusCondition(list, Stalled)
	switch {
	case readyCondition != nil && (readyCondition.Status != metav1.ConditionTrue || o.ReadyCondition == Ready):
		return copyAs(Ready, readyCondition.Status, *readyCondition), true
	case stalled != nil && stalled.Status == metav1.ConditionTrue && !o.Stalled:
		return copyAs(Ready, metav1.ConditionFalse, *stalled), false
	}
	if c := meta.FindStatusCondition(list, progressing); c != nil && c.Status == metav1.ConditionTrue {
		return copyAs(Ready, metav1.ConditionFalse, *c), true
	}
	if i := slices.IndexFunc(list, o.makesUnready); i >= 0 {
		return copyAs(Ready, metav1.ConditionFalse, list[i]), false
	}
	switch {
	case readyCondition == nil:
		return metav1.Condition{Type: Ready, Status: metav1.ConditionUnknown, Reason: NotYetKnown,
			Message: "the operator has not determined the state of the object yet"}, true
	case o.Pending != nil:
		return metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: o.Pending.Reason, Message: o.Pending.Message}, true
	}
	return copyAs(Ready, metav1.ConditionTrue, *readyCondition), false
}

// makesUnready reports whether a condition makes the object unready even if its ready condition is True.
func (o SummaryOptions) makesUnready(c metav1.Condition) bool {
	switch {
	case c.Type == Ready, c.Type == Reconciling, c.Type == Stalled, slices.Contains(o.InformationalConditions, c.Type), slices.Contains(o.InformationalConditions, c.Reason):
		return false
	}
	return NeedsAttention(c)
}

// copyAs returns a condition of the given type and status with the reason and message of another.
func copyAs(conditionType string, status metav1.ConditionStatus, c metav1.Condition) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: c.Reason, Message: c.Message}
}
