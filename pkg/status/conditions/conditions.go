package conditions

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// MaxMessage is the maximum length of a message in bytes. The API allows 32 KiB, which is too long to read and to send to every watcher.
const MaxMessage = 1024

// Set adds or updates a condition for the given generation, and reports whether anything changed. The transition time changes only with the
// status. Credentials in messages are redacted, and messages are clipped at MaxMessage.
func Set(ref *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string,
	generation int64) bool {
	return meta.SetStatusCondition(ref, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            redact.Clip(message, MaxMessage),
		ObservedGeneration: generation,
	})
}

// Get returns a copy of the condition and whether it is present.
func Get(conditions []metav1.Condition, conditionType string) (metav1.Condition, bool) {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return *c, true
	}
	return metav1.Condition{}, false
}

// IsTrue reports whether the condition is present and true.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

// Remove deletes a condition and reports whether it was present.
func Remove(ref *[]metav1.Condition, conditionType string) bool {
	return meta.RemoveStatusCondition(ref, conditionType)
}

// failureWords are prefixes and suffixes of reasons of failures, here and in Kubernetes.
var failureWords = []string{
	"Failed", "Failure", "Error", "Invalid", "NotFound", "Missing", "Forbidden", "Denied", "Unavailable", "Exceeded",
	"BackOff", "Conflict", "Foreign", "Unreachable", "Unschedulable", "Refused", "Rejected", "Expired", "Degraded",
}

// neutralTypes are types of conditions of which neither True nor False is a problem.
var neutralTypes = map[string]bool{"Progressing": true, "Reconciling": true, "Paused": true, "Upgradeable": true}

// negativeTypes are types of conditions with negative polarity: True reports a problem.
var negativeTypes = map[string]bool{"Degraded": true, "Stalled": true, "Failed": true, "Failing": true, "CredentialsInSpec": true}

// NeedsAttention reports whether a condition reports a problem. Conditions of neutral types never do.
func NeedsAttention(c metav1.Condition) bool {
	if negativeTypes[c.Type] {
		return c.Status == metav1.ConditionTrue
	}
	return c.Status == metav1.ConditionFalse && !neutralTypes[c.Type]
}

// finalizing is the reason of conditions that report the progress of a deletion, which is never a problem.
const finalizing = "Finalizing"

// Severity returns the type of the Event for a transition from previous, which is nil for a new condition: Normal during a deletion or if
// healthy and not neutral; else Warning if the reason is a failure or, unless neutral, a negative type is True or previous was healthy.
func Severity(previous *metav1.Condition, after metav1.Condition) string {
	healthy := metav1.ConditionTrue
	if negativeTypes[after.Type] {
		healthy = metav1.ConditionFalse
	}
	switch {
	case !neutralTypes[after.Type] && after.Status == healthy, after.Reason == finalizing:
		return corev1.EventTypeNormal
	case isFailure(after.Reason):
		return corev1.EventTypeWarning
	case neutralTypes[after.Type]:
		return corev1.EventTypeNormal
	case negativeTypes[after.Type] && after.Status == metav1.ConditionTrue:
		return corev1.EventTypeWarning
	case previous != nil && previous.Status == healthy:
		return corev1.EventTypeWarning
	default:
		return corev1.EventTypeNormal
	}
}

func isFailure(reason string) bool {
	return slices.ContainsFunc(failureWords, func(word string) bool {
		return strings.HasSuffix(reason, word) || strings.HasPrefix(reason, word)
	})
}

// Condition types that kstatus evaluates (Flux, helm --wait). They are derived from the other conditions and repeat their reasons and
// messages.
const (
	// Ready is True while the ready condition is True and nothing else makes the object unready, see deriveReady.
	Ready = "Ready"
	// Reconciling is True while the object may become ready without a user, and absent otherwise.
	Reconciling = "Reconciling"
	// Stalled is True while the object cannot become ready before a user acts, and absent otherwise.
	Stalled = "Stalled"
)

const (
	// NotYetKnown is the reason of Ready while the ready condition is absent and no other condition reports a problem or progress.
	NotYetKnown = "NotYetKnown"
	// progressing is set by some components while they, or Kubernetes, roll out the current generation.
	progressing = "Progressing"
)

// Pending is the reason why an object does not match its spec yet, even if an earlier version is serving.
type Pending struct{ Reason, Message string }

// SummaryOptions are the inputs of a summary in addition to the conditions.
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

// Summary returns Ready, Reconciling and Stalled, or only Stalled if ReadyCondition is Ready; those without a status must be removed.
// Without SummaryOptions.Stalled, a Stalled that is True in the list is kept.
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

// deriveReady returns Ready, and whether Reconciling is True unless the object is stalled.
func deriveReady(list []metav1.Condition, o SummaryOptions) (ready metav1.Condition, inProgress bool) {
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
