package appwrapper

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// carryOut writes a decision into the status. Nothing else does, but for what create and remove find out about components.
func carryOut(d rules.Decision, aw *awv1beta2.AppWrapper, now time.Time) {
	for _, c := range d.Conditions {
		setCondition(&aw.Status.Conditions, c, now)
	}
	aw.Status.Retries += d.Retry
	if d.Completed != nil {
		aw.Status.CompletionTime = &metav1.Time{Time: *d.Completed}
	}
	if d.Failure != nil {
		aw.Status.LastFailure = d.Failure
	}
	if d.Announce {
		announce(aw, now)
	}
	if d.Next != "" {
		aw.Status.Phase = d.Next
	}
}

// announce notes of every component that is not deployed what will be created for it. A crash between creation and the
// next status write cannot lose the object then.
func announce(aw *awv1beta2.AppWrapper, now time.Time) {
	for i := range aw.Status.ComponentStatus {
		status := &aw.Status.ComponentStatus[i]
		meta.RemoveStatusCondition(&status.Conditions, awv1beta2.ConditionCompleted)
		if stageOf(status) != rules.Fresh {
			continue
		}
		id := identify(aw, i)
		status.Name, status.Kind, status.APIVersion = id.name, id.kind, id.apiVersion
		setComponent(status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, "", now)
	}
}

// recordDone keeps the success of components whose AppWrapper continues, since they may be gone before it ends.
func recordDone(f *rules.Facts, aw *awv1beta2.AppWrapper, now time.Time) {
	for i, c := range f.Components {
		if c.Outcome == rules.Succeeded && !c.Completed {
			setCondition(&aw.Status.ComponentStatus[i].Conditions,
				rules.NewCondition(awv1beta2.ConditionCompleted, metav1.ConditionTrue, awv1beta2.ReasonSucceeded, ""), now)
		}
	}
}

// setComponent sets the ResourcesDeployed condition of a component.
func setComponent(status *awv1beta2.AppWrapperComponentStatus, value metav1.ConditionStatus, reason, message string, now time.Time) {
	setCondition(&status.Conditions, rules.NewCondition(awv1beta2.ConditionResourcesDeployed, value, reason, message), now)
}

// setCondition adds or updates a condition; the transition time moves with its status only.
func setCondition(ref *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message = conditions.Clip(c.Message, conditions.MaxMessage)
	c.LastTransitionTime = metav1.NewTime(now)
	c.Message = redact.Text(c.Message)
	meta.SetStatusCondition(ref, c)
}

// stageOf reads the stage of a component from its stored condition.
func stageOf(status *awv1beta2.AppWrapperComponentStatus) rules.Stage {
	c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed)
	switch {
	case c == nil:
		return rules.Fresh
	case c.Status == metav1.ConditionTrue:
		return rules.Deployed
	case c.Status == metav1.ConditionUnknown:
		return rules.Announced
	case c.Reason == awv1beta2.ReasonComponentErrored:
		return rules.Errored
	default: // deleted, in either spelling
		return rules.Fresh
	}
}

// summarize derives Ready from the phase, for tools that know no phases. It says nothing of what another controller manages, and of phases of
// a newer release.
func (w *workloads) summarize(aw *awv1beta2.AppWrapper) {
	if !aw.Ours() || !aw.Status.Phase.Known() || aw.Status.Phase == awv1beta2.PhaseEmpty {
		return
	}
	c := ready(aw)
	c.Type, c.ObservedGeneration = conditions.Ready, aw.Generation
	setCondition(&aw.Status.Conditions, c, w.settings.Clock.Now())
}

// ready is True while the pods of a workload run as they should, and after its success.
func ready(aw *awv1beta2.AppWrapper) metav1.Condition {
	phase := string(aw.Status.Phase)
	waiting := rules.NewCondition("", metav1.ConditionFalse, phase, "the AppWrapper is in phase "+phase)
	pods := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionPodsReady)
	unhealthy := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionUnhealthy)
	if unhealthy != nil && unhealthy.Status != metav1.ConditionTrue {
		unhealthy = nil
	}
	switch aw.Status.Phase {
	case awv1beta2.PhaseSucceeded:
		return rules.NewCondition("", metav1.ConditionTrue, phase, "the workload succeeded")
	case awv1beta2.PhaseSuspended:
		waiting.Message = "nothing is deployed: it waits for Kueue, or for spec.suspend to become false"
	case awv1beta2.PhaseFailed:
		if f := aw.Status.LastFailure; f != nil {
			waiting.Message = "the workload failed for good: " + f.Reason + ": " + f.Message
		}
	case awv1beta2.PhaseRunning:
		switch {
		case unhealthy != nil:
			return rules.NewCondition("", metav1.ConditionFalse, unhealthy.Reason, unhealthy.Message)
		case pods != nil:
			return rules.NewCondition("", pods.Status, pods.Reason, pods.Message)
		}
	}
	return waiting
}
