package raycluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// slimPod is the transform of the cache. Thousands of pods may be held.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // a tombstone holds what was slimmed before
	}
	out := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences, Labels: map[string]string{},
	}}
	for _, key := range []string{ray.LabelCluster, ray.LabelNodeType} {
		if value, found := pod.Labels[key]; found {
			out.Labels[key] = value
		}
	}
	if value, found := pod.Annotations[annotationServed]; found {
		out.Annotations = map[string]string{annotationServed: value}
	}
	out.Spec.ServiceAccountName, out.Spec.ImagePullSecrets = pod.Spec.ServiceAccountName, pod.Spec.ImagePullSecrets
	slimSpec(&out.Spec, &pod.Spec)
	out.Status.Phase, out.Status.PodIP, out.Status.PodIPs = pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs
	out.Status.InitContainerStatuses = waitingOnly(pod.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = waitingOnly(pod.Status.ContainerStatuses)
	return out, nil
}

// slimSpec keeps what ray.Injected is about: of the containers names, arguments, mounts and two variables, and our volumes.
func slimSpec(out, in *corev1.PodSpec) {
	for _, c := range in.Containers {
		slim := corev1.Container{Name: c.Name}
		if c.Name == ray.ContainerOAuth || c.Name == ray.ContainerProxy {
			slim.Args = c.Args
			for _, m := range c.VolumeMounts {
				slim.VolumeMounts = append(slim.VolumeMounts, corev1.VolumeMount{Name: m.Name})
			}
		}
		for _, v := range c.Env {
			if slices.Contains(ray.TellingVariables, v.Name) {
				slim.Env = append(slim.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
			}
		}
		out.Containers = append(out.Containers, slim)
	}
	for _, v := range in.Volumes {
		if slices.Contains(ray.Volumes, v.Name) {
			out.Volumes = append(out.Volumes, v)
		}
	}
}

// waitingOnly keeps the containers that wait, and why.
func waitingOnly(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		if s.State.Waiting == nil {
			continue
		}
		out = append(out, corev1.ContainerStatus{Name: s.Name, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: s.State.Waiting.Reason},
		}})
	}
	return out
}
