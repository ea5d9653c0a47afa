package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// NewCache makes the cache of Ray's pods: those with the label of a RayCluster, cut down to what is read here. It is
// filled by one watch with a label selector, and must be added to the manager.
func NewCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	out, err := component.NewCache(mgr, raycluster.LabelCluster, slimPod)
	if err != nil {
		return nil, fmt.Errorf("pods of Ray: %w", err)
	}
	err = out.IndexField(ctx, &corev1.Pod{}, Index, IndexValue)
	if err != nil {
		return nil, fmt.Errorf("indexing pods: %w", err)
	}
	return out, nil
}

// IndexValue is that of a pod for Index.
func IndexValue(object client.Object) []string {
	if owner := clusterOfPod(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// slimPod is the transform of the cache. Thousands of pods may be held.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // a tombstone holds what was slimmed before
	}
	pod.ManagedFields = nil
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return key != AnnotationServed })
	slimSpec(&pod.Spec)
	s := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: s.Phase, PodIP: s.PodIP, PodIPs: s.PodIPs,
		InitContainerStatuses: waitingOnly(s.InitContainerStatuses), ContainerStatuses: waitingOnly(s.ContainerStatuses),
	}
	return pod, nil
}

// slimSpec keeps what raycluster.Injected is about: of the containers names, arguments, mounts and two variables, and our volumes.
func slimSpec(spec *corev1.PodSpec) {
	for i, c := range spec.Containers {
		slim := corev1.Container{Name: c.Name}
		if c.Name == raycluster.ContainerOAuth || c.Name == raycluster.ContainerProxy {
			slim.Args, slim.VolumeMounts = c.Args, c.VolumeMounts
		}
		slim.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return !slices.Contains(raycluster.TellingVariables, v.Name) })
		spec.Containers[i] = slim
	}
	*spec = corev1.PodSpec{
		ServiceAccountName: spec.ServiceAccountName, ImagePullSecrets: spec.ImagePullSecrets, Containers: spec.Containers,
		Volumes: slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return !slices.Contains(raycluster.Volumes, v.Name) }),
	}
}

// waitingOnly keeps the containers that wait, and why.
func waitingOnly(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		if w := s.State.Waiting; w != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: w.Reason}}})
		}
	}
	return out
}
