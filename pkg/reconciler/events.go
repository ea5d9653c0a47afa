package reconciler

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// action is what the events API calls the thing that was done to the object.
	action = "Reconcile"
	// maxNote is the limit of the events API for the note, in bytes.
	maxNote = 1000
)

// recordTransitions sends one event for each condition whose status or reason changed. A new condition counts unless
// it is Unknown, which tells nothing. What only repeats the main condition does not count.
func recordTransitions(recorder events.EventRecorder, obj client.Object, main string, before, after []metav1.Condition) {
	if recorder == nil {
		return
	}
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		if old == nil && c.Status == metav1.ConditionUnknown || repeats(c, main, after) {
			continue
		}
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		note := conditions.Clip(c.Type+" is "+string(c.Status)+": "+c.Message, maxNote)
		recorder.Eventf(obj, nil, conditions.Severity(old, c), c.Reason, action, "%s", note)
	}
}

// repeats reports whether a condition was derived from others, which have events of their own.
func repeats(c metav1.Condition, main string, all []metav1.Condition) bool {
	switch c.Type {
	case main:
		return false
	case conditions.Ready, conditions.Reconciling:
		return true
	case conditions.Stalled:
		source := meta.FindStatusCondition(all, main)
		return source != nil && source.Reason == c.Reason
	}
	return false
}
