package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of the conditions that tools read by the rules of kstatus (Flux, Argo CD, helm --wait). They are derived from the others, which say what
// is the matter, and say nothing that those do not.
const (
	// Ready is True while the object is what its spec asks for and does what it is for.
	Ready = "Ready"
	// Reconciling is True while something is under way that may make the object ready, and absent otherwise.
	Reconciling = "Reconciling"
	// Stalled is True while the object cannot become ready before a user changes something, and absent otherwise.
	Stalled = "Stalled"
	// NotYetKnown is the reason of Ready while the main condition is not known.
	NotYetKnown = "NotYetKnown"
	// progressing is set by some components while they, or Kubernetes, are at work on the present generation.
	progressing = "Progressing"
)

// Pending is why an object is not yet what its spec asks for, whatever serves meanwhile.
type Pending struct{ Reason, Message string }

// Facts are what a summary is made of, beside the conditions.
type Facts struct {
	// Main is the type of the condition that says that the object does what it is for. Where it is Ready itself, only Stalled is derived.
	Main string
	// Advice are types, or reasons, of conditions that take nothing from Ready although they report something to attend to.
	Advice []string
	// Pending is nil when nothing is.
	Pending *Pending
	// Stuck says that only a user can end what is waited for.
	Stuck bool
}

// Summary returns the three conditions as they follow from the others; one without a status is to be absent. A Stalled that is True among
// the others was set for a reason of its own, and stays.
func Summary(list []metav1.Condition, f Facts) []metav1.Condition {
	ready, moving := judge(list, f)
	stalled, reconciling := metav1.Condition{Type: Stalled}, metav1.Condition{Type: Reconciling}
	if c := meta.FindStatusCondition(list, Stalled); f.Stuck {
		stalled = as(Stalled, metav1.ConditionTrue, ready)
	} else if c != nil && c.Status == metav1.ConditionTrue {
		stalled = *c
	}
	if moving && stalled.Status == "" {
		reconciling = as(Reconciling, metav1.ConditionTrue, ready)
	}
	if f.Main == Ready {
		return []metav1.Condition{stalled}
	}
	return []metav1.Condition{ready, reconciling, stalled}
}

// Summarize brings conditions in line with a summary of them, of which only Facts.Stuck makes an object stalled.
func Summarize(ref *[]metav1.Condition, generation int64, f Facts) {
	if !f.Stuck {
		Remove(ref, Stalled)
	}
	for _, c := range Summary(*ref, f) {
		if c.Status == "" {
			Remove(ref, c.Type)
			continue
		}
		Set(ref, c.Type, c.Status, c.Reason, c.Message, generation)
	}
}

// judge returns Ready, and whether something is under way.
func judge(list []metav1.Condition, f Facts) (ready metav1.Condition, moving bool) {
	main := meta.FindStatusCondition(list, f.Main)
	refused := meta.FindStatusCondition(list, Stalled)
	switch {
	case main != nil && (main.Status != metav1.ConditionTrue || f.Main == Ready):
		return as(Ready, main.Status, *main), true
	case refused != nil && refused.Status == metav1.ConditionTrue && !f.Stuck:
		return as(Ready, metav1.ConditionFalse, *refused), false
	}
	if c := meta.FindStatusCondition(list, progressing); c != nil && c.Status == metav1.ConditionTrue {
		return as(Ready, metav1.ConditionFalse, *c), true
	}
	if i := slices.IndexFunc(list, f.bad); i >= 0 {
		return as(Ready, metav1.ConditionFalse, list[i]), false
	}
	switch {
	case main == nil:
		return metav1.Condition{Type: Ready, Status: metav1.ConditionUnknown, Reason: NotYetKnown,
			Message: "it is not known yet whether the object does what it is for"}, true
	case f.Pending != nil:
		return metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: f.Pending.Reason, Message: f.Pending.Message}, true
	}
	return as(Ready, metav1.ConditionTrue, *main), false
}

// bad reports whether a condition keeps the object from being ready although its main one is True.
func (f Facts) bad(c metav1.Condition) bool {
	switch {
	case c.Type == Ready, c.Type == Reconciling, c.Type == Stalled, slices.Contains(f.Advice, c.Type), slices.Contains(f.Advice, c.Reason):
		return false
	}
	return Bad(c)
}

// as is a condition of another type with the reason and message of a given one.
func as(kind string, status metav1.ConditionStatus, c metav1.Condition) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: c.Reason, Message: c.Message}
}
