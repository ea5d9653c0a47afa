package conditions

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCreationFailure returns why controllers could not create pods, from the last Event since a time, or "" without such an Event. Most workloads
// have no condition for rejections by quotas, LimitRanges, Pod Security or SecurityContextConstraints. The function about selects workloads.
func PodCreationFailure(events []corev1.Event, since time.Time, about func(name string) bool) string {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		refused := strings.HasPrefix(e.Reason, "FailedCreate") || strings.HasPrefix(e.Reason, "FailedToCreate")
		if refused && about(e.InvolvedObject.Name) && !lastSeen(e).Before(since) && (last == nil || lastSeen(e).After(lastSeen(last))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return "pods cannot be created: " + StableMessage(last.Message)
}

func lastSeen(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}
