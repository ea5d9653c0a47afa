package appwrapper

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// carryOut writes a decision into the status. Nothing else does, but for what create and remove find out about components.
func carryOut(d decision, aw *awv1beta2.AppWrapper, now time.Time) {
	for _, c := range d.conditions {
		setCondition(&aw.Status.Conditions, c, now)
	}
	aw.Status.Retries += d.retry
	if d.completed != nil {
		aw.Status.CompletionTime = &metav1.Time{Time: *d.completed}
	}
	if d.failure != nil {
		aw.Status.LastFailure = d.failure
	}
	if d.announce {
		announce(aw, now)
	}
	if d.next != "" {
		aw.Status.Phase = d.next
	}
}

// announce notes of every component that is not deployed what will be created for it. A crash between creation and the
// next status write cannot lose the object then.
func announce(aw *awv1beta2.AppWrapper, now time.Time) {
	for i := range aw.Status.ComponentStatus {
		status := &aw.Status.ComponentStatus[i]
		meta.RemoveStatusCondition(&status.Conditions, awv1beta2.ConditionCompleted)
		if stageOf(status) != fresh {
			continue
		}
		id := identify(aw, i)
		status.Name, status.Kind, status.APIVersion = id.name, id.kind, id.apiVersion
		setComponent(status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, "", now)
	}
}

// recordDone keeps the success of components whose AppWrapper goes on, since they may be gone before it ends.
func recordDone(f *facts, aw *awv1beta2.AppWrapper, now time.Time) {
	for i, c := range f.components {
		if c.outcome == succeeded && !c.completed {
			setCondition(&aw.Status.ComponentStatus[i].Conditions,
				set(awv1beta2.ConditionCompleted, metav1.ConditionTrue, awv1beta2.ReasonSucceeded, ""), now)
		}
	}
}

// setComponent sets the ResourcesDeployed condition of a component.
func setComponent(status *awv1beta2.AppWrapperComponentStatus, value metav1.ConditionStatus, reason, message string, now time.Time) {
	setCondition(&status.Conditions, set(awv1beta2.ConditionResourcesDeployed, value, reason, message), now)
}

// setCondition adds or updates a condition; the transition time moves with its status only.
func setCondition(ref *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message = conditions.Clip(c.Message, conditions.MaxMessage)
	c.LastTransitionTime = metav1.NewTime(now)
	c.Message = redact.Text(c.Message)
	meta.SetStatusCondition(ref, c)
}

// stageOf reads the stage of a component from its stored condition.
func stageOf(status *awv1beta2.AppWrapperComponentStatus) stage {
	c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed)
	switch {
	case c == nil:
		return fresh
	case c.Status == metav1.ConditionTrue:
		return deployed
	case c.Status == metav1.ConditionUnknown:
		return announced
	case c.Reason == awv1beta2.ReasonComponentErrored:
		return errored
	default: // deleted, in either spelling
		return fresh
	}
}
