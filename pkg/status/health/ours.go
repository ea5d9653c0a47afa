package health

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// catalog is judged like a registry; one whose server runs without a source of its users is not what they want.
func catalog(o object) Verdict {
	verdict := byCondition("Available", "Progressing")(o)
	if verdict.State != Healthy {
		return verdict
	}
	for _, source := range o.list("status", "sources") {
		if source.text("state") == string(v1alpha1.SourceRejected) {
			verdict.State, verdict.Reason = Degraded, source.text("reason")
			verdict.Message = fmt.Sprintf("source %s is not used: %s", source.text("name"), source.text("message"))
			return verdict
		}
	}
	return verdict
}

// phases of an AppWrapper, as states.
var phases = map[v1beta2.AppWrapperPhase]State{
	v1beta2.PhaseEmpty: Progressing, v1beta2.PhaseSuspended: Idle, v1beta2.PhaseResuming: Progressing, v1beta2.PhaseRunning: Healthy,
	v1beta2.PhaseResetting: Degraded, v1beta2.PhaseSuspending: Progressing, v1beta2.PhaseSucceeded: Healthy, v1beta2.PhaseFailed: Failed,
	v1beta2.PhaseTerminating: Deleting,
}

// appWrapper is judged by its phase; one that runs also by its pods.
func appWrapper(o object) Verdict {
	if by := o.text("spec", "managedBy"); by != "" && by != v1beta2.ManagedByThis {
		return Verdict{State: Idle, Reason: "ManagedElsewhere", Message: "spec.managedBy gives it to " + by}
	}
	phase := v1beta2.AppWrapperPhase(o.text("status", "phase"))
	state, known := phases[phase]
	if !known {
		return Verdict{State: Unknown, Reason: string(phase)}
	}
	verdict := Verdict{State: state, Reason: string(phase)}
	unhealthy, _ := o.condition(v1beta2.ConditionUnhealthy)
	pods, _ := o.condition(v1beta2.ConditionPodsReady)
	switch {
	case phase == v1beta2.PhaseSuspended:
		verdict.Message = "it waits for Kueue, or for spec.suspend to become false"
	case phase == v1beta2.PhaseFailed, phase == v1beta2.PhaseResetting:
		verdict.Message = o.text("status", "lastFailure", "message")
		if verdict.Message == "" {
			verdict.Message = unhealthy.message
		}
		if at, err := time.Parse(time.RFC3339, o.text("status", "lastFailure", "time")); err == nil {
			verdict.Since = at
		}
	case phase != v1beta2.PhaseRunning:
	case unhealthy.is(metav1.ConditionTrue):
		return unhealthy.verdict(Degraded)
	case !pods.is(metav1.ConditionTrue):
		verdict = pods.verdict(Progressing)
		if verdict.Reason == "" {
			verdict.Reason = string(phase)
		}
	default:
		verdict.Message, verdict.Since = pods.message, pods.since
	}
	return verdict
}

// rayCluster is judged by what KubeRay says.
func rayCluster(o object) Verdict {
	failure, _ := o.condition("RayClusterReplicaFailure")
	provisioned, reported := o.condition("RayClusterProvisioned")
	state := o.text("status", "state")
	switch {
	case o.flag("spec", "suspend") && state == "suspended":
		return Verdict{State: Idle, Reason: "Suspended"}
	case o.flag("spec", "suspend"):
		return Verdict{State: Progressing, Reason: "Suspending", Message: "KubeRay is to remove its pods"}
	case failure.is(metav1.ConditionTrue):
		return failure.verdict(Failed)
	case state == "failed":
		return Verdict{State: Failed, Reason: "Failed", Message: o.text("status", "reason")}
	case state == "" && !reported:
		return Verdict{State: Unknown, Message: "KubeRay has not reported on it yet"}
	case o.stale(condition{}):
		return Verdict{State: Progressing, Message: "the last change is being taken up"}
	}
	head, _ := o.condition("HeadPodReady")
	if head.is(metav1.ConditionFalse) {
		return head.verdict(Progressing)
	}
	if state == "ready" || provisioned.is(metav1.ConditionTrue) {
		return workers(o, provisioned)
	}
	return provisioned.verdict(Progressing)
}

// workers counts those of a cluster whose head runs.
func workers(o object, since condition) Verdict {
	have, _ := o.number("status", "readyWorkerReplicas")
	want, _ := o.number("status", "desiredWorkerReplicas")
	verdict := Verdict{State: Healthy, Reason: "Ready", Message: fmt.Sprintf("%d/%d workers ready", have, want), Since: since.since}
	if have < want {
		verdict.State, verdict.Reason = Progressing, "WorkersNotReady"
	}
	return verdict
}
