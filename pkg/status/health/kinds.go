package health

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	servingv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const meshGroup = "serving.kserve.io"

// judges know more of a kind than the rules for all.
var judges = map[schema.GroupKind]func(*unstructured.Unstructured) Verdict{
	{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind}: catalog,
	{Group: v1beta2.GroupVersion.Group, Kind: v1beta2.Kind}:   appWrapper,
	{Group: meshGroup, Kind: "InferenceService"}:              inferenceService,
	{Group: meshGroup, Kind: "ServingRuntime"}:                servingRuntime,
	{Group: meshGroup, Kind: "ClusterServingRuntime"}:         servingRuntime,
	{Group: "ray.io", Kind: "RayCluster"}:                     rayCluster,
	{Group: "apps", Kind: "Deployment"}:                       deployment,
	{Kind: "Pod"}:                                             pod,
	{Kind: "PersistentVolumeClaim"}:                           claim,
	{Group: "kueue.x-k8s.io", Kind: "Workload"}:               workload,
	{Group: "route.openshift.io", Kind: "Route"}:              published("ingress"),
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}:   published("parents"),
}

// catalog is not what its users want while its server runs without a source of theirs.
func catalog(u *unstructured.Unstructured) Verdict {
	verdict := general(u)
	for _, source := range nested.List(u.Object, "status", "sources") {
		if verdict.State == Healthy && nested.String(source, "state") == string(v1alpha1.SourceRejected) {
			verdict.State, verdict.Reason = Degraded, nested.String(source, "reason")
			verdict.Message = fmt.Sprintf("source %s is not used: %s", nested.String(source, "name"), nested.String(source, "message"))
		}
	}
	return verdict
}

// appWrapper fails for good in one phase only.
func appWrapper(u *unstructured.Unstructured) Verdict {
	if by := nested.String(u.Object, "spec", "managedBy"); by != "" && by != v1beta2.ManagedByThis {
		return Verdict{State: Idle, Reason: "ManagedElsewhere", Message: "spec.managedBy gives it to " + by}
	}
	verdict, phase := general(u), v1beta2.AppWrapperPhase(nested.String(u.Object, "status", "phase"))
	switch {
	case verdict.State != Failed || phase == v1beta2.PhaseFailed:
	case phase == v1beta2.PhaseResetting, of(u).is(v1beta2.ConditionUnhealthy):
		verdict.State = Degraded
	default:
		verdict.State = Progressing
	}
	return verdict
}

// inferenceService may be ready with its former model, while that of its spec is loaded or failed.
func inferenceService(u *unstructured.Unstructured) Verdict {
	verdict, model := general(u), nested.Map(u.Object, "status", "modelStatus")
	transition := servingv1alpha1.TransitionStatus(nested.String(model, "transitionStatus"))
	if verdict.State != Healthy || transition == "" || transition == servingv1alpha1.UpToDate {
		return verdict
	}
	verdict.State = Degraded
	if transition == servingv1alpha1.InProgress {
		verdict.State = Progressing
	}
	verdict.Reason = cmp.Or(nested.String(model, "lastFailureInfo", "reason"), string(transition))
	verdict.Message = "the former model answers: " + cmp.Or(nested.String(model, "lastFailureInfo", "message"), "the new one is not loaded yet")
	return verdict
}

// servingRuntime has no status: its Deployments tell whether its pods run.
func servingRuntime(u *unstructured.Unstructured) Verdict {
	multi, _ := nested.At(u.Object, "spec", "multiModel").(bool)
	disabled, _ := nested.At(u.Object, "spec", "disabled").(bool)
	if !multi || disabled {
		return Verdict{State: Idle, Reason: "NotServed", Message: "spec.disabled takes it out of service, or spec.multiModel leaves it to KServe"}
	}
	return Verdict{State: Healthy}
}

// rayCluster is judged by what KubeRay says, which has no condition that sums up the others.
func rayCluster(u *unstructured.Unstructured) Verdict {
	s, verdict := of(u), general(u)
	have, _ := nested.At(u.Object, "status", "readyWorkerReplicas").(int64)
	want, _ := nested.At(u.Object, "status", "desiredWorkerReplicas").(int64)
	head, provisioned := s.condition("HeadPodReady"), s.condition("RayClusterProvisioned")
	switch state := nested.String(u.Object, "status", "state"); {
	case state == "failed":
		return Verdict{State: Failed, Reason: "Failed", Message: nested.String(u.Object, "status", "reason")}
	case verdict.State != Healthy:
		return verdict
	case head.Status == metav1.ConditionFalse:
		return verdictOf(head, Progressing)
	case state != "ready" && provisioned.Status != metav1.ConditionTrue:
		return verdictOf(provisioned, Progressing)
	case have < want:
		return Verdict{State: Progressing, Reason: "WorkersNotReady", Message: fmt.Sprintf("%d/%d workers ready", have, want)}
	}
	return Verdict{State: Healthy, Reason: "Ready", Message: fmt.Sprintf("%d/%d workers ready", have, want), Since: provisioned.LastTransitionTime.Time}
}

// deployment is judged as the controllers do, which say why pods cannot be created.
func deployment(u *unstructured.Unstructured) Verdict {
	d := nested.Decode[appsv1.Deployment](u.Object)
	rollout := conditions.Rollout(&d)
	verdict := Verdict{State: Progressing, Reason: rollout.Reason, Message: rollout.Message}
	switch {
	case rollout.Ready && rollout.Desired == 0:
		verdict.State = Idle
		return verdict
	case rollout.Failed:
		verdict.State = Failed
	}
	verdict.Message = fmt.Sprintf("%d/%d ready", rollout.ReadyReplicas, rollout.Desired)
	if rollout.Ready {
		verdict.State = Healthy
	} else {
		verdict.Message += ": " + rollout.Message
	}
	return verdict
}

// pod is judged by what is wrong with it, which kstatus does not look for.
func pod(u *unstructured.Unstructured) Verdict {
	p := nested.Decode[corev1.Pod](u.Object)
	gate := of(u).condition(string(corev1.PodScheduled))
	verdict := Verdict{State: Failed, Reason: cmp.Or(p.Status.Reason, string(p.Status.Phase)), Message: conditions.Diagnose([]corev1.Pod{p})}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing" {
			verdict.Reason = c.State.Waiting.Reason
		}
	}
	switch {
	case verdict.Message != "":
	case p.Status.Phase == corev1.PodFailed:
		verdict.Message = p.Status.Message
	case p.Status.Phase == corev1.PodSucceeded:
		return Verdict{State: Healthy, Reason: "Completed"}
	case gate.Reason == corev1.PodReasonSchedulingGated:
		return verdictOf(gate, Idle)
	default:
		reason := verdict.Reason
		if verdict = general(u); verdict.State == Failed {
			verdict.State, verdict.Reason = Progressing, reason
		}
	}
	return verdict
}

// claim fails for good when its volume was deleted.
func claim(u *unstructured.Unstructured) Verdict {
	if nested.String(u.Object, "status", "phase") == string(corev1.ClaimLost) {
		return Verdict{State: Failed, Reason: string(corev1.ClaimLost), Message: "the volume of the claim was deleted"}
	}
	return general(u)
}

// workload waits in a queue of Kueue until quota is reserved for it.
func workload(u *unstructured.Unstructured) Verdict {
	if c := of(u).condition("QuotaReserved"); c.Status == metav1.ConditionFalse {
		return verdictOf(c, Idle)
	}
	return general(u)
}

// published judges what each router or gateway says of a route; none may refuse it.
func published(list string) func(*unstructured.Unstructured) Verdict {
	return func(u *unstructured.Unstructured) Verdict {
		parents := nested.List(u.Object, "status", list)
		for _, parent := range parents {
			fields, _ := parent.(map[string]any)
			for _, c := range nested.Decode[status](fields).Conditions {
				if c.Status == metav1.ConditionFalse && (c.Type == "Admitted" || c.Type == "Accepted" || c.Type == "ResolvedRefs") {
					return verdictOf(c, Failed)
				}
			}
		}
		if len(parents) == 0 {
			return Verdict{State: Idle, Message: "no router or gateway has taken it up"}
		}
		return Verdict{State: Healthy, Message: nested.String(u.Object, "spec", "host")}
	}
}
