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
	switch aw.Status.Phase {
	case awv1beta2.PhaseSucceeded:
		return rules.NewCondition("", metav1.ConditionTrue, phase, "the workload succeeded")
	case awv1beta2.PhaseSuspended:
		waiting.Message = "nothing is deployed: it waits for Kueue, or for spec.suspend to become false"
	case awv1beta2.PhaseFailed:
		if f := aw.Status.LastFailure; f != nil {
			waiting.Message = "the workload failed for good: " + f.Reason + ": " + f.Message
		}
	case awv1beta2.PhaseResuming:
		if pods := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionPodsReady); pods != nil && pods.Reason == awv1beta2.ReasonCreateFailed {
			return rules.NewCondition("", metav1.ConditionFalse, pods.Reason, pods.Message+"; it is tried again until the admission grace period ends")
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
	return waiting
}

// RecorderName is the name under which Events are sent; clients know it.
const RecorderName = "appwrappers"

const (
	// action is what the events API calls the thing that was done to the object.
	action = "Reconcile"
	// maxNote is the limit of the events API for the note, in bytes.
	maxNote = 1000
)

// phases counts steps from phase to phase, under the name that the original's dashboards use.
var phases = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "appwrapper_phase_total",
	Help: "Transitions of AppWrappers into a phase, by namespace and phase.",
}, []string{"namespace", "phase"})

// forgetNamespace removes the series of a namespace that is gone.
func forgetNamespace(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	phases.DeletePartialMatch(prometheus.Labels{"namespace": e.Object.GetName()})
}

// news is one Event.
type news struct{ severity, reason, note string }

// written tells of a step when its status is stored, and so exactly once.
func (w *workloads) written(before, after *awv1beta2.AppWrapper) {
	if before.Status.Phase == after.Status.Phase {
		return
	}
	phases.WithLabelValues(after.Namespace, string(after.Status.Phase)).Inc()
	ctrl.Log.WithName("appwrapper").Info("The AppWrapper has entered another phase", "namespace", after.Namespace,
		"name", after.Name, "from", before.Status.Phase, "to", after.Status.Phase)
	for _, e := range story(before, after) {
		w.recorder.Eventf(after, nil, e.severity, e.reason, action, "%s", conditions.Clip(e.note, maxNote))
	}
}

// story returns the Events about a step.
func story(before, after *awv1beta2.AppWrapper) []news {
	var out []news
	from, to := before.Status.Phase, after.Status.Phase
	failed := after.Status.LastFailure
	if failed != nil && (to == awv1beta2.PhaseResetting || to == awv1beta2.PhaseFailed) {
		out = append(out, news{corev1.EventTypeWarning, awv1beta2.ConditionUnhealthy, failed.Reason + ": " + failed.Message})
	}
	step := news{corev1.EventTypeNormal, string(to), ""}
	switch to {
	case awv1beta2.PhaseSuspending:
		step.note = fmt.Sprintf("Externally suspended while in the %s phase", from)
	case awv1beta2.PhaseRunning:
		step.note = "All components are created"
	case awv1beta2.PhaseSucceeded:
		step.note = "The workload succeeded"
		if c := meta.FindStatusCondition(after.Status.Conditions, awv1beta2.ConditionQuotaReserved); c != nil && c.Message != "" {
			step.note = c.Message
		}
	case awv1beta2.PhaseFailed:
		step.severity, step.note = corev1.EventTypeWarning, fmt.Sprintf("Failed for good after %d retries", after.Status.Retries)
		if failed != nil {
			step.note += ": " + failed.Reason + ": " + failed.Message
		}
	default:
		return out
	}
	return append(out, step)
}
