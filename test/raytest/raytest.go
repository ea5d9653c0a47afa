// Package raytest provides pods of Ray for the tests of several packages.
package raytest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Pod returns a pod of the RayCluster team/demo as KubeRay creates it. uid is the UID of the RayCluster.
func Pod(name, role string, uid types.UID, ips ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name + "-uid"),
		Labels: map[string]string{raycluster.LabelCluster: "demo", raycluster.LabelNodeType: role, "ray.io/group": "g", "other": "x"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: uid, Controller: new(true),
		}},
	}}
	for _, ip := range ips {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		pod.Status.PodIP = ips[0]
	}
	return pod
}

// Waiting returns the statuses of a container that waits with the given reason, and of a running container.
func Waiting(reason string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: "c", Image: "i", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "a long text"},
	}}, {Name: "runs", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}
