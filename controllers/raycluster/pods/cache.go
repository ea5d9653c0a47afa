package pods

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// NewCache makes the cache of Ray's pods: those with the label of a RayCluster, cut down to what is read here. It is
// filled by one watch with a label selector, and must be added to the manager.
func NewCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	ofRay, err := labels.NewRequirement(raycluster.LabelCluster, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting pods by label: %w", err)
	}
	out, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.NewSelector().Add(*ofRay), DefaultTransform: slimPod, ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of pods: %w", err)
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
	out := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences, Labels: map[string]string{},
	}}
	for _, key := range []string{raycluster.LabelCluster, raycluster.LabelNodeType} {
		if value, found := pod.Labels[key]; found {
			out.Labels[key] = value
		}
	}
	if value, found := pod.Annotations[AnnotationServed]; found {
		out.Annotations = map[string]string{AnnotationServed: value}
	}
	out.Spec.ServiceAccountName, out.Spec.ImagePullSecrets = pod.Spec.ServiceAccountName, pod.Spec.ImagePullSecrets
	slimSpec(&out.Spec, &pod.Spec)
	out.Status.Phase, out.Status.PodIP, out.Status.PodIPs = pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs
	out.Status.InitContainerStatuses = waitingOnly(pod.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = waitingOnly(pod.Status.ContainerStatuses)
	return out, nil
}

// slimSpec keeps what raycluster.Injected is about: of the containers names, arguments, mounts and two variables, and our volumes.
func slimSpec(out, in *corev1.PodSpec) {
	for _, c := range in.Containers {
		slim := corev1.Container{Name: c.Name}
		if c.Name == raycluster.ContainerOAuth || c.Name == raycluster.ContainerProxy {
			slim.Args = c.Args
			for _, m := range c.VolumeMounts {
				slim.VolumeMounts = append(slim.VolumeMounts, corev1.VolumeMount{Name: m.Name})
			}
		}
		for _, v := range c.Env {
			if slices.Contains(raycluster.TellingVariables, v.Name) {
				slim.Env = append(slim.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
			}
		}
		out.Containers = append(out.Containers, slim)
	}
	for _, v := range in.Volumes {
		if slices.Contains(raycluster.Volumes, v.Name) {
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
