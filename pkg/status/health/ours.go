package health

import (
	"cmp"
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
	unhealthy := o.condition(v1beta2.ConditionUnhealthy)
	pods := o.condition(v1beta2.ConditionPodsReady)
	switch {
	case phase == v1beta2.PhaseSuspended:
		verdict.Message = "it waits for Kueue, or for spec.suspend to become false"
	case phase == v1beta2.PhaseFailed, phase == v1beta2.PhaseResetting:
		verdict.Message = cmp.Or(o.text("status", "lastFailure", "message"), unhealthy.Message)
		verdict.Since, _ = time.Parse(time.RFC3339, o.text("status", "lastFailure", "time"))
	case phase != v1beta2.PhaseRunning:
	case unhealthy.Status == metav1.ConditionTrue:
		return verdictOf(unhealthy, Degraded)
	case pods.Status != metav1.ConditionTrue:
		verdict = verdictOf(pods, Progressing)
		verdict.Reason = cmp.Or(verdict.Reason, string(phase))
	default:
		verdict.Message, verdict.Since = pods.Message, pods.LastTransitionTime.Time
	}
	return verdict
}

// rayCluster is judged by what KubeRay says.
func rayCluster(o object) Verdict {
	failure := o.condition("RayClusterReplicaFailure")
	provisioned := o.condition("RayClusterProvisioned")
	state := o.text("status", "state")
	switch {
	case o.flag("spec", "suspend") && state == "suspended":
		return Verdict{State: Idle, Reason: "Suspended"}
	case o.flag("spec", "suspend"):
		return Verdict{State: Progressing, Reason: "Suspending", Message: "KubeRay is to remove its pods"}
	case failure.Status == metav1.ConditionTrue:
		return verdictOf(failure, Failed)
	case state == "failed":
		return Verdict{State: Failed, Reason: "Failed", Message: o.text("status", "reason")}
	case state == "" && provisioned.Type == "":
		return Verdict{State: Unknown, Message: "KubeRay has not reported on it yet"}
	case o.stale(metav1.Condition{}):
		return Verdict{State: Progressing, Message: "the last change is being taken up"}
	}
	if head := o.condition("HeadPodReady"); head.Status == metav1.ConditionFalse {
		return verdictOf(head, Progressing)
	}
	if state == "ready" || provisioned.Status == metav1.ConditionTrue {
		return workers(o, provisioned)
	}
	return verdictOf(provisioned, Progressing)
}

// workers counts those of a cluster whose head runs.
func workers(o object, since metav1.Condition) Verdict {
	have, want := o.number("status", "readyWorkerReplicas"), o.number("status", "desiredWorkerReplicas")
	verdict := verdictOf(since, Healthy)
	verdict.Reason, verdict.Message = "Ready", fmt.Sprintf("%d/%d workers ready", have, want)
	if have < want {
		verdict.State, verdict.Reason = Progressing, "WorkersNotReady"
	}
	return verdict
}
