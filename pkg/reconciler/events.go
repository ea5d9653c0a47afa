package reconciler

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// action is the action field of the Events.
const action = "Reconcile"

// recordTransitions records an event for each condition whose status or reason changed, and for new conditions that are not Unknown.
// Conditions for which isDerived returns true get no event.
func recordTransitions(recorder events.EventRecorder, obj client.Object, readyCondition string, before, after []metav1.Condition) {
	if recorder == nil {
		return
	}
	for _, c := range after {
		previous := meta.FindStatusCondition(before, c.Type)
		if previous == nil && c.Status == metav1.ConditionUnknown || isDerived(c, readyCondition, after) {
			continue
		}
		if previous != nil && previous.Status == c.Status && previous.Reason == c.Reason {
			continue
		}
		note := c.Type + " is " + string(c.Status) + ": " + c.Message
		recorder.Eventf(obj, nil, conditions.Severity(previous, c), c.Reason, action, "%s", note)
	}
}

// isDerived reports whether a condition was derived from others, which have events of their own.
func isDerived(c metav1.Condition, readyCondition string, all []metav1.Condition) bool {
	switch c.Type {
	case readyCondition:
		return false
	case conditions.Ready, conditions.Reconciling:
		return true
	case conditions.Stalled:
		source := meta.FindStatusCondition(all, readyCondition)
		return source != nil && source.Reason == c.Reason
	}
	return false
}
