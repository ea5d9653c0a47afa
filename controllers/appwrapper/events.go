package appwrapper

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

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
	switch to {
	case awv1beta2.PhaseSuspending:
		out = append(out, news{corev1.EventTypeNormal, string(to), fmt.Sprintf("Externally suspended while in the %s phase", from)})
	case awv1beta2.PhaseRunning:
		out = append(out, news{corev1.EventTypeNormal, string(to), "All components are created"})
	case awv1beta2.PhaseSucceeded:
		note := "The workload succeeded"
		if c := meta.FindStatusCondition(after.Status.Conditions, awv1beta2.ConditionQuotaReserved); c != nil && c.Message != "" {
			note = c.Message
		}
		out = append(out, news{corev1.EventTypeNormal, string(to), note})
	case awv1beta2.PhaseFailed:
		note := fmt.Sprintf("Failed for good after %d retries", after.Status.Retries)
		if failed != nil {
			note += ": " + failed.Reason + ": " + failed.Message
		}
		out = append(out, news{corev1.EventTypeWarning, string(to), note})
	}
	return out
}
