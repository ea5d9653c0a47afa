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
// it is Unknown, which tells nothing.
func recordTransitions(recorder events.EventRecorder, obj client.Object, before, after []metav1.Condition) {
	if recorder == nil {
		return
	}
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		if old == nil && c.Status == metav1.ConditionUnknown || c.Type == conditionReconciling { // Available says the same
			continue
		}
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		note := conditions.Clip(c.Type+" is "+string(c.Status)+": "+c.Message, maxNote)
		recorder.Eventf(obj, nil, conditions.Severity(old, c), c.Reason, action, "%s", note)
	}
}
