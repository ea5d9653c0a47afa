// Package pods holds the pods of Ray clusters: a cache of their own, cut down to what is read, and what a pod says.
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

	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Index finds pods by the uid of the RayCluster that controls them.
const Index = "raycluster"

// AnnotationServed is put on a pod once its address is in the certificate of its role.
const AnnotationServed = "ray.openshift.ai/certificate-for"

// clusterOfPod returns the reference to the RayCluster that controls a pod, or nil. Labels alone count for nothing: every
// tenant can set them.
func clusterOfPod(pod metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != raycluster.GVK.Kind {
		return nil
	}
	return owner
}

// Of returns the pods that a RayCluster controls, from the cache and as part of it: they must not be changed.
func Of(ctx context.Context, pods client.Reader, namespace string, uid types.UID) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := pods.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{Index: string(uid)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the cluster: %w", err)
	}
	return list.Items, nil
}

// Injected are what the pods have of ours that are not over: each head, and the first pod with certificates.
func Injected(c raycluster.Cluster, pods []corev1.Pod) (heads []raycluster.Injected, mounted raycluster.Injected) {
	for i := range pods {
		pod := &pods[i]
		if IsOver(pod) {
			continue
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
		utilruntime.Must(err) // it has the form of a type of Kubernetes
		has := c.InjectedInto(spec)
		if IsHead(pod) {
			heads = append(heads, has)
		}
		if !mounted.MTLS {
			mounted = has
		}
	}
	return heads, mounted
}

// IsHead tells whether a pod is the head of its cluster.
func IsHead(pod *corev1.Pod) bool {
	return pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead
}

// IsOver tells whether the containers of a pod have ended for good.
func IsOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// WaitingReasons says why the containers of a pod wait, those of its init containers first.
func WaitingReasons(pod *corev1.Pod) []string {
	var out []string
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if s.State.Waiting != nil && s.State.Waiting.Reason != "" {
				out = append(out, s.State.Waiting.Reason)
			}
		}
	}
	return out
}

// Addresses returns the addresses of a pod.
func Addresses(pod *corev1.Pod) []netip.Addr {
	texts := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	var out []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a.Unmap()) {
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

// Changed lets the events of pods through that can matter: a head that comes, an address, a reason to wait, and the end of a
// pod, after which it counts no more for what is exposed and kept.
func Changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && (IsHead(pod) || len(Addresses(pod)) > 0 || len(WaitingReasons(pod)) > 0)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			return ok && also && (!slices.Equal(Addresses(before), Addresses(after)) || IsOver(before) != IsOver(after) ||
				!slices.Equal(WaitingReasons(before), WaitingReasons(after)))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

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
