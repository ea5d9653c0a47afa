package platform

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionReady says whether the area has all it needs. The platform waits for it.
const ConditionReady = "Ready"

// mergeCondition adds or updates one condition and leaves foreign ones alone. The transition time moves with the status,
// the heartbeat with any change; neither moves when nothing changes.
func mergeCondition(list *[]platformv1alpha1.Condition, now metav1.Time, c platformv1alpha1.Condition) {
	c.Message = conditions.Clip(c.Message, conditions.MaxMessage)
	c.LastTransitionTime, c.LastHeartbeatTime = now, &now
	i := slices.IndexFunc(*list, ofType(c.Type))
	if i < 0 {
		*list = append(*list, c)
		return
	}
	old := (*list)[i]
	if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message &&
		old.ObservedGeneration == c.ObservedGeneration && old.Severity == c.Severity {
		return
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	(*list)[i] = c
}

// removeCondition drops a condition of ours.
func removeCondition(list *[]platformv1alpha1.Condition, kind string) {
	*list = slices.DeleteFunc(*list, ofType(kind))
}

// access lets the shell of reconciles see and set the conditions of a resource of the platform.
func access[T reconciler.Target](of func(T) *[]platformv1alpha1.Condition, now func() metav1.Time) reconciler.Conditions[T] {
	return reconciler.Conditions[T]{
		List: func(o T) []metav1.Condition { return standard(*of(o)) },
		Set: func(o T, c metav1.Condition) {
			mergeCondition(of(o), now(), platformv1alpha1.Condition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
				ObservedGeneration: c.ObservedGeneration, Severity: platformv1alpha1.SeverityInfo,
			})
		},
		Remove: func(o T, kind string) { removeCondition(of(o), kind) },
	}
}

func ofType(kind string) func(platformv1alpha1.Condition) bool {
	return func(c platformv1alpha1.Condition) bool { return c.Type == kind }
}

// standard returns the conditions as those of Kubernetes, for events and metrics.
func standard(list []platformv1alpha1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(list))
	for _, c := range list {
		out = append(out, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return out
}

// summarize derives the phase from the condition Ready.
func summarize(status *platformv1alpha1.Status) {
	status.Phase = platformv1alpha1.PhaseProgressing
	i := slices.IndexFunc(status.Conditions, ofType(ConditionReady))
	if i >= 0 && status.Conditions[i].Status == metav1.ConditionTrue {
		status.Phase = platformv1alpha1.PhaseReady
	}
}
