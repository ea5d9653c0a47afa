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

// evaluators evaluate kinds with special rules.
var evaluators = map[schema.GroupKind]func(*unstructured.Unstructured) Verdict{
	{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind}: catalog,
	{Group: v1beta2.GroupVersion.Group, Kind: v1beta2.Kind}:   appWrapper,
	{Group: meshGroup, Kind: "InferenceService"}:              inferenceService,
	{Group: meshGroup, Kind: "ServingRuntime"}:                servingRuntime,
	{Group: meshGroup, Kind: "ClusterServingRuntime"}:         servingRuntime,
	{Group: "ray.io", Kind: "RayCluster"}:                     rayCluster,
	{Group: "apps", Kind: "Deployment"}:                       deployment,
	{Kind: "Pod"}:                                             pod,
	{Kind: "PersistentVolumeClaim"}:                           persistentVolumeClaim,
	{Group: "kueue.x-k8s.io", Kind: "Workload"}:               workload,
	{Group: "route.openshift.io", Kind: "Route"}:              routeEvaluator("ingress"),
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}:   routeEvaluator("parents"),
}

// catalog returns Degraded for a Catalog that is healthy except for a rejected source.
func catalog(u *unstructured.Unstructured) Verdict {
	verdict := evaluateGeneric(u)
	for _, source := range nested.List(u.Object, "status", "sources") {
		if verdict.State == Healthy && nested.String(source, "state") == string(v1alpha1.SourceRejected) {
			verdict.State, verdict.Reason = Degraded, nested.String(source, "reason")
			verdict.Message = fmt.Sprintf("source %s is not used: %s", nested.String(source, "name"), nested.String(source, "message"))
		}
	}
	return verdict
}

// appWrapper returns Failed only in the phase Failed.
func appWrapper(u *unstructured.Unstructured) Verdict {
	if managedBy := nested.String(u.Object, "spec", "managedBy"); managedBy != "" && managedBy != v1beta2.ManagedByThis {
		return Verdict{State: Idle, Reason: "ManagedElsewhere", Message: "spec.managedBy is " + managedBy + ", so another controller manages it"}
	}
	verdict, phase := evaluateGeneric(u), v1beta2.AppWrapperPhase(nested.String(u.Object, "status", "phase"))
	switch {
	case verdict.State != Failed || phase == v1beta2.PhaseFailed:
	case phase == v1beta2.PhaseResetting, statusOf(u).isTrue(v1beta2.ConditionUnhealthy):
		verdict.State = Degraded
	default:
		verdict.State = Progressing
	}
	return verdict
}

// inferenceService returns Degraded or Progressing while the previous model serves.
func inferenceService(u *unstructured.Unstructured) Verdict {
	verdict, model := evaluateGeneric(u), nested.Map(u.Object, "status", "modelStatus")
	transition := servingv1alpha1.TransitionStatus(nested.String(model, "transitionStatus"))
	if verdict.State != Healthy || transition == "" || transition == servingv1alpha1.UpToDate {
		return verdict
	}
	verdict.State = Degraded
	if transition == servingv1alpha1.InProgress {
		verdict.State = Progressing
	}
	verdict.Reason = cmp.Or(nested.String(model, "lastFailureInfo", "reason"), string(transition))
	verdict.Message = "the previous model serves requests: " + cmp.Or(nested.String(model, "lastFailureInfo", "message"), "the new one is not loaded yet")
	return verdict
}

// servingRuntime evaluates the spec, because the kind has no status. The Deployments report the state of the pods.
func servingRuntime(u *unstructured.Unstructured) Verdict {
	multiModel, _ := nested.At(u.Object, "spec", "multiModel").(bool)
	disabled, _ := nested.At(u.Object, "spec", "disabled").(bool)
	if !multiModel || disabled {
		return Verdict{State: Idle, Reason: "NotServed", Message: "spec.disabled is true, or spec.multiModel is not true and KServe serves it"}
	}
	return Verdict{State: Healthy}
}

// rayCluster evaluates the status of KubeRay, which has no condition that summarizes the others.
func rayCluster(u *unstructured.Unstructured) Verdict {
	s, verdict := statusOf(u), evaluateGeneric(u)
	readyWorkers, _ := nested.At(u.Object, "status", "readyWorkerReplicas").(int64)
	desiredWorkers, _ := nested.At(u.Object, "status", "desiredWorkerReplicas").(int64)
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
	case readyWorkers < desiredWorkers:
		return Verdict{State: Progressing, Reason: "WorkersNotReady", Message: fmt.Sprintf("%d/%d workers ready", readyWorkers, desiredWorkers)}
	}
	return Verdict{State: Healthy, Reason: "Ready", Message: fmt.Sprintf("%d/%d workers ready", readyWorkers, desiredWorkers), Since: provisioned.LastTransitionTime.Time}
}

// deployment evaluates the rollout, which reports why pods cannot be created.
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

// pod evaluates the problems of containers, most of which kstatus ignores.
func pod(u *unstructured.Unstructured) Verdict {
	p := nested.Decode[corev1.Pod](u.Object)
	scheduled := statusOf(u).condition(string(corev1.PodScheduled))
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
	case scheduled.Reason == corev1.PodReasonSchedulingGated:
		return verdictOf(scheduled, Idle)
	default:
		reason := verdict.Reason
		if verdict = evaluateGeneric(u); verdict.State == Failed {
			verdict.State, verdict.Reason = Progressing, reason
		}
	}
	return verdict
}

// persistentVolumeClaim returns Failed if the volume was deleted.
func persistentVolumeClaim(u *unstructured.Unstructured) Verdict {
	if nested.String(u.Object, "status", "phase") == string(corev1.ClaimLost) {
		return Verdict{State: Failed, Reason: string(corev1.ClaimLost), Message: "the volume of the claim was deleted: recreate the claim and restore a backup"}
	}
	return evaluateGeneric(u)
}

// workload returns Idle until Kueue reserves quota.
func workload(u *unstructured.Unstructured) Verdict {
	if c := statusOf(u).condition("QuotaReserved"); c.Status == metav1.ConditionFalse {
		return verdictOf(c, Idle)
	}
	return evaluateGeneric(u)
}

// routeEvaluator returns an evaluator of routes, which returns Failed if a router or gateway rejects the route.
func routeEvaluator(parentsField string) func(*unstructured.Unstructured) Verdict {
	return func(u *unstructured.Unstructured) Verdict {
		parents := nested.List(u.Object, "status", parentsField)
		for _, parent := range parents {
			fields, _ := parent.(map[string]any)
			for _, c := range nested.Decode[status](fields).Conditions {
				if c.Status == metav1.ConditionFalse && (c.Type == "Admitted" || c.Type == "Accepted" || c.Type == "ResolvedRefs") {
					return verdictOf(c, Failed)
				}
			}
		}
		if len(parents) == 0 {
			return Verdict{State: Idle, Message: "waiting for a router or gateway to accept it"}
		}
		return Verdict{State: Healthy, Message: nested.String(u.Object, "spec", "host")}
	}
}
