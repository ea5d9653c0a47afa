package raycluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// podIndex finds pods by the uid of the RayCluster that controls them.
const podIndex = "raycluster"

// annotationServed is put on a pod once its address stands in the certificate of its role, see servePods.
const annotationServed = "ray.openshift.ai/certificate-for"

// newPodCache makes the cache of Ray's pods: those with the label of a RayCluster, cut down to what is looked at here. It is
// filled by one watch with a label selector, and must be added to the manager.
func newPodCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	ofRay, err := labels.NewRequirement(ray.LabelCluster, selection.Exists, nil)
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
	err = out.IndexField(ctx, &corev1.Pod{}, podIndex, indexPod)
	if err != nil {
		return nil, fmt.Errorf("indexing pods: %w", err)
	}
	return out, nil
}

func indexPod(object client.Object) []string {
	if owner := clusterOfPod(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// clusterOfPod returns the reference to the RayCluster that controls a pod, or nil. Labels alone count for nothing: every
// tenant can set them.
func clusterOfPod(pod metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != ray.GVK.Kind {
		return nil
	}
	return owner
}

// podsOf returns the pods that a RayCluster controls, from the cache and as part of it: they must not be changed.
func podsOf(ctx context.Context, pods client.Reader, namespace string, uid types.UID) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := pods.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{podIndex: string(uid)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the cluster: %w", err)
	}
	return list.Items, nil
}

// injectedInto are what the pods have of ours that are not over: each head, and the first pod with certificates.
func injectedInto(c ray.Cluster, pods []corev1.Pod) (heads []ray.Injected, mounted ray.Injected, err error) {
	for i := range pods {
		pod := &pods[i]
		if isOver(pod) {
			continue
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
		if err != nil {
			return nil, mounted, fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
		has := c.InjectedInto(spec)
		if isHead(pod) {
			heads = append(heads, has)
		}
		if !mounted.MTLS {
			mounted = has
		}
	}
	return heads, mounted, nil
}

func isHead(pod *corev1.Pod) bool { return pod.Labels[ray.LabelNodeType] == ray.NodeTypeHead }

// isOver tells whether the containers of a pod have ended for good.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// waitingReasons says why the containers of a pod wait, those of its init containers first.
func waitingReasons(pod *corev1.Pod) []string {
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

// addressesOf returns the addresses of a pod.
func addressesOf(pod *corev1.Pod) []netip.Addr {
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

// byRayCluster maps a pod to the RayCluster that controls it.
func byRayCluster(_ context.Context, object client.Object) []reconcile.Request {
	owner := clusterOfPod(object)
	if owner == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}}}
}

// podMoved lets the events of pods through that can matter: a head that comes, an address, a reason to wait, and the end of a
// pod, after which it counts no more for what is exposed and kept.
func podMoved() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && (isHead(pod) || len(addressesOf(pod)) > 0 || len(waitingReasons(pod)) > 0)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			return ok && also && (!slices.Equal(addressesOf(before), addressesOf(after)) || isOver(before) != isOver(after) ||
				!slices.Equal(waitingReasons(before), waitingReasons(after)))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
