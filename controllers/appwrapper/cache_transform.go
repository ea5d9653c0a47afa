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
	pod.ManagedFields, pod.Annotations, pod.Labels = nil, nil, keep(pod.Labels)
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: pod.Spec.Containers}
	for i, c := range pod.Spec.Containers {
		pod.Spec.Containers[i] = corev1.Container{Name: c.Name, Resources: c.Resources}
	}
	s := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: s.Phase, Reason: s.Reason, Message: s.Message, Conditions: s.Conditions,
		InitContainerStatuses: s.InitContainerStatuses, ContainerStatuses: s.ContainerStatuses,
	}
	return pod
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
