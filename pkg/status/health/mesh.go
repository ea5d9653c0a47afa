package health

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// model is the state of a model, which Predictors and InferenceServices tell in the same words at different places.
type model struct {
	available      bool
	transition     v1alpha1.TransitionStatus
	active, target v1alpha1.ModelState
	failure        object
	copies, failed int64
	// since, reason and message are those of the condition, where there is one.
	since           time.Time
	reason, message string
}

func predictor(o object) Verdict {
	if _, found := o.Object["status"].(map[string]any); !found {
		return unreported()
	}
	return model{
		available: o.flag("status", "available"), transition: v1alpha1.TransitionStatus(o.text("status", "transitionStatus")),
		active: v1alpha1.ModelState(o.text("status", "activeModelState")), target: v1alpha1.ModelState(o.text("status", "targetModelState")),
		failure: o.part("status", "lastFailureInfo"), copies: o.number("status", "totalCopies"), failed: o.number("status", "failedCopies"),
	}.verdict()
}

// inferenceService is judged by the state of its model; by its condition where there is none, as outside ModelMesh.
func inferenceService(o object) Verdict {
	status, ready := o.part("status", "modelStatus"), o.condition("Ready")
	if status.text("transitionStatus") == "" {
		if ready.Type == "" {
			return unreported()
		}
		return byCondition("Ready", "")(o)
	}
	return model{
		available: ready.Status == metav1.ConditionTrue, transition: v1alpha1.TransitionStatus(status.text("transitionStatus")),
		active: v1alpha1.ModelState(status.text("states", "activeModelState")), target: v1alpha1.ModelState(status.text("states", "targetModelState")),
		failure: status.part("lastFailureInfo"), copies: status.number("copies", "totalCopies"), failed: status.number("copies", "failedCopies"),
		since: ready.LastTransitionTime.Time, reason: ready.Reason, message: ready.Message,
	}.verdict()
}

func unreported() Verdict {
	return Verdict{State: Unknown, Message: "ModelMesh has not reported on it yet"}
}

// verdict puts the state of the model into words.
func (m model) verdict() Verdict {
	out := Verdict{State: Healthy, Reason: string(m.active), Since: m.since, Message: copies(m.copies)}
	if m.failed > 0 {
		out.Message += fmt.Sprintf(", %d failed", m.failed)
	}
	switch {
	case m.transition == v1alpha1.InvalidSpec, m.transition == v1alpha1.BlockedByFailedLoad, m.active == v1alpha1.FailedToLoad:
		out.State = Failed
		if m.available {
			out.State = Degraded // the former model continues
		}
	case !m.available && m.failure.text("reason") != "":
		out.State = Failed
	case !m.available:
		out.State = Progressing
	case m.transition == v1alpha1.InProgress:
		out.State, out.Reason = Progressing, string(m.transition)
		out.Message = "the former model answers until the new one does, which is " + string(m.target)
	}
	if out.State != Healthy {
		m.explain(&out)
	}
	return out
}

func copies(n int64) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

// explain adds what the mesh says about the failure.
func (m model) explain(v *Verdict) {
	reason, message := m.failure.text("reason"), m.failure.text("message")
	if reason == "" && message == "" {
		reason, message = m.reason, m.message
	}
	v.Reason, v.Message = cmp.Or(reason, v.Reason), cmp.Or(message, v.Message)
}

// InvalidRuntime is the reason of a runtime of which ModelMesh makes no pods, and NoPods begins the message.
const (
	InvalidRuntime = "InvalidRuntime"
	NoPods         = "no pods are made or changed: "
)

// servingRuntime has no status. Whether its pods run is reported by its Deployments, unless its spec can have none.
func servingRuntime(o object) Verdict {
	switch {
	case o.flag("spec", "disabled"):
		return Verdict{State: Idle, Reason: "Disabled", Message: "spec.disabled takes it out of service"}
	case !o.flag("spec", "multiModel"):
		return Verdict{State: Idle, Reason: "SingleModel", Message: "spec.multiModel is not true, so ModelMesh leaves it to KServe"}
	}
	if problem := invalidRuntime(o); problem != "" {
		return Verdict{State: Failed, Reason: InvalidRuntime, Message: NoPods + problem}
	}
	return Verdict{State: Healthy}
}

// invalidRuntime says why ModelMesh makes no pods of a runtime; "" when it does. Which built-in servers there are is for the settings to
// say, which are not known here: any will do.
func invalidRuntime(o object) string {
	var r v1alpha1.ServingRuntime // those of the cluster have the same fields
	if !o.decode(&r) {
		return ""
	}
	if r.Malformed != "" {
		return r.Malformed
	}
	var servers []string
	if r.Spec.BuiltInAdapter != nil {
		servers = append(servers, r.Spec.BuiltInAdapter.ServerType)
	}
	if err := modelmesh.Validate(&r.Spec, servers); err != nil {
		return err.Error()
	}
	return ""
}
