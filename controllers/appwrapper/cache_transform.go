package appwrapper

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// slim is the transform of the cache: of pods and components it keeps what rules look at. Thousands of pods are held.
func slim(in any) (any, error) {
	switch object := in.(type) {
	case *corev1.Pod:
		return slimPod(object), nil
	case *unstructured.Unstructured:
		return slimComponent(object), nil
	case *metav1.PartialObjectMetadata:
		object.ManagedFields, object.Annotations = nil, nil
	}
	return in, nil // a tombstone holds what was slimmed before
}

func slimPod(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		Labels: keep(pod.Labels), OwnerReferences: pod.OwnerReferences,
	}}
	out.Spec.NodeName = pod.Spec.NodeName
	for _, c := range pod.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}})
	}
	out.Status.Phase, out.Status.Reason, out.Status.Message = pod.Status.Phase, pod.Status.Reason, pod.Status.Message
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	out.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses)
	return out
}

func slimStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		out = append(out, corev1.ContainerStatus{Name: s.Name, Image: s.Image, Ready: s.Ready, State: s.State, LastTerminationState: s.LastTerminationState})
	}
	return out
}

// keep leaves the labels by which pods are found and assigned.
func keep(labels map[string]string) map[string]string {
	out := make(map[string]string, 1)
	for _, key := range []string{awv1beta2.LabelAppWrapper, labelJobSet, raycluster.LabelCluster} {
		if value, ok := labels[key]; ok {
			out[key] = value
		}
	}
	return out
}

// judgedFields are the fields of a status that judges read.
var judgedFields = []string{"conditions", "jobStatus", "jobDeploymentStatus", "rayClusterName", "state", "reason", "message"}

func slimComponent(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := nested.Pick(nested.Map(object.Object, "metadata"), "namespace", "name", "uid", "resourceVersion", "ownerReferences", "deletionTimestamp")
	out := &unstructured.Unstructured{Object: nested.Pick(object.Object, "apiVersion", "kind")}
	out.Object["metadata"] = metadata
	out.SetLabels(keep(object.GetLabels()))
	if status := nested.Map(object.Object, "status"); status != nil {
		out.Object["status"] = nested.Pick(status, judgedFields...)
	}
	return out
}
