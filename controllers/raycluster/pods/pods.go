// Package pods provides a cache of the pods of Ray clusters, reduced to the fields that are read, and functions on such pods.
package pods

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Index is the index of pods by the uid of the RayCluster that controls them.
const Index = "raycluster"

// AnnotationCertificateFor is set on a pending pod when the certificate of its role contains its addresses. The value lists the addresses.
const AnnotationCertificateFor = "ray.openshift.ai/certificate-for"

// clusterOfPod returns the reference to the RayCluster that controls a pod, or nil. Labels are not trusted, since every tenant can set them.
func clusterOfPod(pod metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != raycluster.GVK.Kind {
		return nil
	}
	return owner
}

// List returns the pods that a RayCluster controls, from the cache without a copy: they must not be modified.
func List(ctx context.Context, pods client.Reader, namespace string, uid types.UID) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := pods.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{Index: string(uid)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the cluster: %w", err)
	}
	return list.Items, nil
}

// Injections returns the injections of unfinished pods: of each head, and of the first pod with certificates (without MTLS if there is none).
func Injections(c raycluster.Cluster, pods []corev1.Pod) (heads []raycluster.Injected, mounted raycluster.Injected) {
	for i := range pods {
		pod := &pods[i]
		if IsFinished(pod) {
			continue
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
		utilruntime.Must(err) // a typed object always converts
		injected := c.InjectedInto(spec)
		if IsHead(pod) {
			heads = append(heads, injected)
		}
		if !mounted.MTLS {
			mounted = injected
		}
	}
	return heads, mounted
}

// IsHead reports whether a pod is the head of its cluster.
func IsHead(pod *corev1.Pod) bool {
	return pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead
}

// IsFinished reports whether a pod has succeeded or failed.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// WaitingReasons returns the reasons of all waiting containers, init containers first.
func WaitingReasons(pod *corev1.Pod) []string {
	var out []string
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.State.Waiting != nil && s.State.Waiting.Reason != "" {
			out = append(out, s.State.Waiting.Reason)
		}
	}
	return out
}

// Addresses returns the unique IP addresses of a pod.
func Addresses(pod *corev1.Pod) []netip.Addr {
	ips := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	var out []netip.Addr
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip); err == nil && !slices.Contains(out, a.Unmap()) {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// ToCluster maps a pod to the RayCluster that controls it.
func ToCluster(_ context.Context, object client.Object) []reconcile.Request {
	owner := clusterOfPod(object)
	if owner == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}}}
}

// Changed selects pod events: a new head, new or changed addresses or waiting reasons of any pod, and the deletion or completion of a pod.
// A deleted or completed pod no longer affects exposed and retained objects.
func Changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && (IsHead(pod) || len(Addresses(pod)) > 0 || len(WaitingReasons(pod)) > 0)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			original, ok := e.ObjectOld.(*corev1.Pod)
			updated, okNew := e.ObjectNew.(*corev1.Pod)
			return ok && okNew && (!slices.Equal(Addresses(original), Addresses(updated)) || IsFinished(original) != IsFinished(updated) ||
				!slices.Equal(WaitingReasons(original), WaitingReasons(updated)))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// NewCache adds a cache of Ray's pods to the manager. One watch with a label selector fills it.
func NewCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	out, err := caches.New(mgr, raycluster.LabelCluster, cache.Options{DefaultTransform: trimPod})
	if err != nil {
		return nil, fmt.Errorf("pods of Ray: %w", err)
	}
	err = out.IndexField(ctx, &corev1.Pod{}, Index, IndexValue)
	if err != nil {
		return nil, fmt.Errorf("indexing pods: %w", err)
	}
	return out, nil
}

// IndexValue returns the values of a pod for Index.
func IndexValue(object client.Object) []string {
	if owner := clusterOfPod(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// trimPod is the transform of the cache, which may hold thousands of pods.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // the object in a tombstone is trimmed already
	}
	pod.ManagedFields = nil
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return key != AnnotationCertificateFor })
	trimSpec(&pod.Spec)
	s := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: s.Phase, PodIP: s.PodIP, PodIPs: s.PodIPs,
		InitContainerStatuses: waitingStatuses(s.InitContainerStatuses), ContainerStatuses: waitingStatuses(s.ContainerStatuses),
	}
	return pod, nil
}

// trimSpec removes all fields except the ServiceAccount, the pull secrets, and those that Cluster.InjectedInto reads.
func trimSpec(spec *corev1.PodSpec) {
	for i, c := range spec.Containers {
		trimmed := corev1.Container{Name: c.Name}
		if c.Name == raycluster.ContainerOAuth || c.Name == raycluster.ContainerProxy {
			trimmed.Args, trimmed.VolumeMounts = c.Args, c.VolumeMounts
		}
		trimmed.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return !slices.Contains(raycluster.ReadVariables, v.Name) })
		spec.Containers[i] = trimmed
	}
	*spec = corev1.PodSpec{
		ServiceAccountName: spec.ServiceAccountName, ImagePullSecrets: spec.ImagePullSecrets, Containers: spec.Containers,
		Volumes: slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return !slices.Contains(raycluster.ReadVolumes, v.Name) }),
	}
}

// waitingStatuses returns the names and reasons of waiting containers.
func waitingStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		if w := s.State.Waiting; w != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: w.Reason}}})
		}
	}
	return out
}
