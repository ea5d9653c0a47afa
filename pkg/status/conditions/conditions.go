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

// Remove deletes a condition and reports whether it was present.
func Remove(ref *[]metav1.Condition, conditionType string) bool {
	return meta.RemoveStatusCondition(ref, conditionType)
}

// failureWords are prefixes and suffixes of reasons of failures, here and in Kubernetes.
var failureWords = []string{
	"Failed", "Failure", "Error", "Invalid", "NotFound", "Missing", "Forbidden", "Denied", "Unavailable", "Exceeded",
	"BackOff", "Conflict", "Foreign", "Unreachable", "Unschedulable", "Refused", "Rejected", "Expired", "Degraded",
}

// neutralTypes are types of conditions that report activity; neither status is a problem by itself.
var neutralTypes = map[string]bool{"Progressing": true, "Reconciling": true, "Paused": true, "Upgradeable": true}

// negativeTypes are types of conditions that report a problem with the status True.
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

// Severity returns the type of the event for a transition: Warning if the condition was healthy before or the reason is that of a failure,
// otherwise Normal. The previous condition is nil for a new one.
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

// Clip limits a text to the given number of bytes, at a character boundary, and marks clipped texts with "...".
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
