package appwrapper

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// applyDecision writes a decision into the status. In addition, createComponents and deleteComponents write the status of components.
func applyDecision(d rules.Decision, aw *awv1beta2.AppWrapper, now time.Time) {
	for _, c := range d.Conditions {
		setCondition(&aw.Status.Conditions, c, now)
	}
	aw.Status.Retries += d.Retry
	if d.CompletionTime != nil {
		aw.Status.CompletionTime = &metav1.Time{Time: *d.CompletionTime}
	}
	if d.Failure != nil {
		aw.Status.LastFailure = d.Failure
	}
	if d.Announce {
		announceComponents(aw, now)
	}
	if d.NextPhase != "" {
		aw.Status.Phase = d.NextPhase
	}
}

// announceComponents stores the ID of each object before its creation: the operator then finds the object after a crash, even if no later
// status update succeeded.
func announceComponents(aw *awv1beta2.AppWrapper, now time.Time) {
	for i := range aw.Status.ComponentStatus {
		status := &aw.Status.ComponentStatus[i]
		meta.RemoveStatusCondition(&status.Conditions, awv1beta2.ConditionCompleted)
		if stageOf(status) != rules.NotCreated {
			continue
		}
		id := identify(aw, i)
		status.Name, status.Kind, status.APIVersion = id.name, id.kind, id.apiVersion
		setResourcesDeployed(status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, "", now)
	}
}

// recordSucceeded stores the success of components while the AppWrapper continues, since they may be deleted before it completes.
func recordSucceeded(f *rules.Facts, aw *awv1beta2.AppWrapper, now time.Time) {
	for i, c := range f.Components {
		if c.Outcome == rules.Succeeded && !c.Completed {
			setCondition(&aw.Status.ComponentStatus[i].Conditions,
				rules.NewCondition(awv1beta2.ConditionCompleted, metav1.ConditionTrue, awv1beta2.ReasonSucceeded, ""), now)
		}
	}
}

// setResourcesDeployed sets the ResourcesDeployed condition of a component.
func setResourcesDeployed(status *awv1beta2.AppWrapperComponentStatus, value metav1.ConditionStatus, reason, message string, now time.Time) {
	setCondition(&status.Conditions, rules.NewCondition(awv1beta2.ConditionResourcesDeployed, value, reason, message), now)
}

// setCondition sets a condition. The transition time changes only with the status of the condition.
func setCondition(ref *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message = redact.Clip(c.Message, conditions.MaxMessage)
	c.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(ref, c)
}

// stageOf returns the stage of a component from its stored condition.
func stageOf(status *awv1beta2.AppWrapperComponentStatus) rules.Stage {
	c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed)
	switch {
	case c == nil:
		return rules.NotCreated
	case c.Status == metav1.ConditionTrue:
		return rules.Deployed
	case c.Status == metav1.ConditionUnknown:
		return rules.Announced
	case c.Reason == awv1beta2.ReasonComponentErrored:
		return rules.Errored
	default: // deleted, under either reason
		return rules.NotCreated
	}
}

// setReady derives Ready from the phase, for tools that do not know the phases. It skips new AppWrappers, those of another controller, and
// phases of a newer release.
func (w *workloadReconciler) setReady(aw *awv1beta2.AppWrapper) {
	if !aw.IsManaged() || !aw.Status.Phase.IsKnown() || aw.Status.Phase == awv1beta2.PhaseEmpty {
		return
	}
	c := readyCondition(aw)
	c.Type, c.ObservedGeneration = conditions.Ready, aw.Generation
	setCondition(&aw.Status.Conditions, c, w.settings.Clock.Now())
}

// readyCondition returns the condition Ready without its type. It is True while the pods of a workload run as expected, and after its success.
func readyCondition(aw *awv1beta2.AppWrapper) metav1.Condition {
	phase := string(aw.Status.Phase)
	notReady := rules.NewCondition("", metav1.ConditionFalse, phase, "the AppWrapper is in phase "+phase)
	switch aw.Status.Phase {
	case awv1beta2.PhaseSucceeded:
		return rules.NewCondition("", metav1.ConditionTrue, phase, "the workload succeeded")
	case awv1beta2.PhaseSuspended:
		notReady.Message = "nothing is deployed: the AppWrapper waits for Kueue, or for spec.suspend to become false"
	case awv1beta2.PhaseFailed:
		if f := aw.Status.LastFailure; f != nil {
			notReady.Message = "the workload failed: " + f.Reason + ": " + f.Message
		}
	case awv1beta2.PhaseResuming:
		if pods := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionPodsReady); pods != nil && pods.Reason == awv1beta2.ReasonCreateFailed {
			return rules.NewCondition("", metav1.ConditionFalse, pods.Reason, pods.Message+"; creation is retried until the admission grace period ends")
		}
	case awv1beta2.PhaseRunning:
		unhealthy := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionUnhealthy)
		if unhealthy != nil && unhealthy.Status == metav1.ConditionTrue {
			return rules.NewCondition("", metav1.ConditionFalse, unhealthy.Reason, unhealthy.Message)
		}
		if pods := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionPodsReady); pods != nil {
			return rules.NewCondition("", pods.Status, pods.Reason, pods.Message)
		}
	}
	return notReady
}

// RecorderName is the name of the Event recorder. Clients select Events by this name.
const RecorderName = "appwrappers"

// eventAction is the action of Events.
const eventAction = "Reconcile"

// phaseTransitions counts transitions under the metric name that dashboards of the CodeFlare operator use.
var phaseTransitions = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "appwrapper_phase_total",
	Help: "Transitions of AppWrappers into a phase, by namespace and phase.",
}, []string{"namespace", "phase"})

// forgetNamespace removes the series of a deleted namespace.
func forgetNamespace(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	phaseTransitions.DeletePartialMatch(prometheus.Labels{"namespace": e.Object.GetName()})
}

type eventRecord struct{ eventType, reason, note string }

// recordTransition counts a transition, logs it and sends its Events. It runs after the status update, and therefore once per transition.
func (w *workloadReconciler) recordTransition(original, aw *awv1beta2.AppWrapper) {
	if original.Status.Phase == aw.Status.Phase {
		return
	}
	phaseTransitions.WithLabelValues(aw.Namespace, string(aw.Status.Phase)).Inc()
	ctrl.Log.WithName("appwrapper").Info("The AppWrapper has entered another phase", "namespace", aw.Namespace,
		"name", aw.Name, "from", original.Status.Phase, "to", aw.Status.Phase)
	for _, e := range transitionEvents(original, aw) {
		w.recorder.Eventf(aw, nil, e.eventType, e.reason, eventAction, "%s", e.note)
	}
}

// transitionEvents returns the Events of a transition.
func transitionEvents(original, aw *awv1beta2.AppWrapper) []eventRecord {
	var records []eventRecord
	from, to := original.Status.Phase, aw.Status.Phase
	failure := aw.Status.LastFailure
	if failure != nil && (to == awv1beta2.PhaseResetting || to == awv1beta2.PhaseFailed) {
		records = append(records, eventRecord{corev1.EventTypeWarning, awv1beta2.ConditionUnhealthy, failure.Reason + ": " + failure.Message})
	}
	transition := eventRecord{corev1.EventTypeNormal, string(to), ""}
	switch to {
	case awv1beta2.PhaseSuspending:
		transition.note = fmt.Sprintf("Externally suspended while in the %s phase", from)
	case awv1beta2.PhaseRunning:
		transition.note = "All components are created"
	case awv1beta2.PhaseSucceeded:
		transition.note = "The workload succeeded"
		if c := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionQuotaReserved); c != nil && c.Message != "" {
			transition.note = c.Message
		}
	case awv1beta2.PhaseFailed:
		transition.eventType, transition.note = corev1.EventTypeWarning, fmt.Sprintf("Failed permanently after %d retries", aw.Status.Retries)
		if failure != nil {
			transition.note += ": " + failure.Reason + ": " + failure.Message
		}
	default:
		return records
	}
	return append(records, transition)
}
