package conditions

import (
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// MaxMessage is the longest condition message in bytes that Set writes. The API allows 32 KiB; that is too much to read,
// and every watcher of the object receives it.
const MaxMessage = 1024

// Set adds or updates a condition that was observed at the given generation and reports whether anything changed. The
// transition time moves only with the status. Messages lose their credentials, and
// are cut at MaxMessage.
func Set(ref *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string,
	generation int64) bool {
	return meta.SetStatusCondition(ref, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            Clip(redact.Text(message), MaxMessage),
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

// Remove drops a condition and reports whether it was present.
func Remove(ref *[]metav1.Condition, conditionType string) bool {
	return meta.RemoveStatusCondition(ref, conditionType)
}

// failureWords are how reasons of failures end or begin, here and in Kubernetes.
var failureWords = []string{
	"Failed", "Failure", "Error", "Invalid", "NotFound", "Missing", "Forbidden", "Denied", "Unavailable", "Exceeded",
	"BackOff", "Conflict", "Foreign", "Unreachable", "Unschedulable", "Refused", "Rejected", "Expired", "Degraded",
}

// neutral conditions report activity; neither of their states is good or bad by itself.
var neutral = map[string]bool{"Progressing": true, "Reconciling": true, "Paused": true, "Upgradeable": true}

// negative conditions are bad when they are true.
var negative = map[string]bool{"Degraded": true, "Stalled": true, "Failed": true, "Failing": true, "CredentialsInSpec": true}

// Bad reports whether a condition is in the state that needs attention. Those that report activity never are.
func Bad(c metav1.Condition) bool {
	if negative[c.Type] {
		return c.Status == metav1.ConditionTrue
	}
	return c.Status == metav1.ConditionFalse && !neutral[c.Type]
}

// finalizing is the reason of conditions that report how far a deletion is, whatever their state: a user wants it.
const finalizing = "Finalizing"

// Severity gives the type of the event for a transition: Warning when a condition left its good state or its reason
// is that of a failure, else Normal. A nil before means that the condition is new.
func Severity(before *metav1.Condition, after metav1.Condition) string {
	good := metav1.ConditionTrue
	if negative[after.Type] {
		good = metav1.ConditionFalse
	}
	switch {
	case !neutral[after.Type] && after.Status == good, after.Reason == finalizing:
		return corev1.EventTypeNormal
	case isFailure(after.Reason):
		return corev1.EventTypeWarning
	case neutral[after.Type]:
		return corev1.EventTypeNormal
	case negative[after.Type] && after.Status == metav1.ConditionTrue:
		return corev1.EventTypeWarning
	case before != nil && before.Status == good:
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

// Clip cuts a text to at most limit bytes at a character boundary and marks the cut with "...".
func Clip(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	if limit <= len(mark) {
		return mark[:max(limit, 0)]
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
