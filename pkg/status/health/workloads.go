package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// odd is the verdict of a status that its own type does not fit.
func odd() Verdict { return Verdict{State: Unknown, Message: "its status has an unexpected shape"} }

func deployment(o object) Verdict {
	var d appsv1.Deployment
	if !o.decode(&d) {
		return odd()
	}
	rollout := conditions.Rollout(&d)
	verdict := Verdict{State: Progressing, Reason: rollout.Reason, Message: rollout.Message}
	switch {
	case rollout.Ready && rollout.Desired == 0:
		verdict.State = Idle
	case rollout.Ready:
		verdict.State = Healthy
	case rollout.Failed:
		verdict.State = Failed
	}
	if rollout.Desired > 0 {
		verdict.Message = ready(int64(rollout.ReadyReplicas), int64(rollout.Desired)) + also(verdict.State, rollout.Message)
	}
	return verdict
}

// ready counts.
func ready(have, want int64) string { return fmt.Sprintf("%d/%d ready", have, want) }

// also adds a text where not all is well.
func also(state State, text string) string {
	if state == Healthy || text == "" {
		return ""
	}
	return ": " + text
}

// replicas wanted; the API's default is 1.
func replicas(o object) int64 { return o.numberOr(1, "spec", "replicas") }

func replicaSet(o object) Verdict {
	if c := o.condition("ReplicaFailure"); c.Status == metav1.ConditionTrue {
		return verdictOf(c, Failed)
	}
	want := replicas(o)
	have := o.number("status", "availableReplicas")
	switch {
	case want == 0:
		return Verdict{State: Idle, Reason: conditions.ReasonScaledToZero}
	case have < want:
		return Verdict{State: Progressing, Reason: conditions.ReasonNotAvailable, Message: ready(have, want)}
	}
	return Verdict{State: Healthy, Message: ready(want, want)}
}

func statefulSet(o object) Verdict {
	if replicas(o) == 0 {
		return Verdict{State: Idle, Reason: conditions.ReasonScaledToZero}
	}
	return computed(o)
}

func job(o object) Verdict {
	for _, c := range o.conditions() {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == "Failed":
			return verdictOf(c, Failed)
		case c.Type == "Complete":
			return verdictOf(c, Healthy)
		case c.Type == "Suspended":
			return verdictOf(c, Idle)
		}
	}
	return Verdict{State: Progressing, Message: fmt.Sprintf("%d pods at work", o.number("status", "active"))}
}

func cronJob(o object) Verdict {
	if o.flag("spec", "suspend") {
		return Verdict{State: Idle, Reason: "Suspended"}
	}
	return Verdict{State: Healthy, Message: "runs at " + o.text("spec", "schedule")}
}

func pod(o object) Verdict {
	var p corev1.Pod
	if !o.decode(&p) {
		return odd()
	}
	if cause := conditions.Diagnose([]corev1.Pod{p}); cause != "" {
		return Verdict{State: Failed, Reason: podReason(&p), Message: cause}
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return Verdict{State: Healthy, Reason: "Completed"}
	case corev1.PodFailed:
		return Verdict{State: Failed, Reason: p.Status.Reason, Message: p.Status.Message}
	}
	have, want := int64(0), int64(len(p.Spec.Containers))
	for _, status := range p.Status.ContainerStatuses {
		if status.Ready {
			have++
		}
	}
	if c := o.condition(string(corev1.PodReady)); c.Status == metav1.ConditionTrue {
		return Verdict{State: Healthy, Reason: string(p.Status.Phase), Message: ready(have, want), Since: c.LastTransitionTime.Time}
	}
	if c := o.condition(string(corev1.PodScheduled)); c.Reason == corev1.PodReasonSchedulingGated {
		return Verdict{State: Idle, Reason: c.Reason, Message: "it waits until its scheduling gates are removed"}
	}
	return Verdict{State: Progressing, Reason: string(p.Status.Phase), Message: ready(have, want)}
}

// podReason is the word with which Kubernetes says why a pod does not run.
func podReason(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, status := range statuses {
			switch {
			case status.State.Waiting != nil && status.State.Waiting.Reason != "PodInitializing" && status.State.Waiting.Reason != "ContainerCreating":
				return status.State.Waiting.Reason
			case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
				return status.State.Terminated.Reason
			}
		}
	}
	return p.Status.Reason
}
