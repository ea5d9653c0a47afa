package certificates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
)

// serve marks the pods that wait once their address is in the certificate of their role: a pod that changes makes its
// kubelet bring the volumes up to date at once, which it does every minute or so otherwise. Each pod costs one request in its
// life.
func (p *reconciliation) serve(ctx context.Context, all []corev1.Pod) error {
	alive := sets.New[types.UID]()
	for i := range all {
		alive.Insert(all[i].UID)
	}
	for _, leaf := range p.plan.leaves {
		if known, ok := p.memory.slots[leaf.secret]; ok && !known.foreign {
			if err := p.serveRole(ctx, leaf, known, all); err != nil {
				return err
			}
		}
	}
	p.memory.served = p.memory.served.Intersection(alive)
	return nil
}

func (p *reconciliation) serveRole(ctx context.Context, leaf leafPlan, known slot, all []corev1.Pod) error {
	for _, pod := range podsOfRole(leaf.role, all) {
		if p.memory.served.Has(pod.UID) || !isWaitingFor(pod, known) {
			continue
		}
		if seen, err := p.isSeen(ctx, leaf.secret, known); !seen || err != nil {
			return err
		}
		if err := p.serveOne(ctx, pod); err != nil {
			return err
		}
		p.memory.served.Insert(pod.UID)
	}
	return nil
}

// isSeen reports whether watches have brought the Secret as it was written, to us and so most likely to kubelets: one that is
// notified too early reads the old one. The event that is still to come requeues the cluster.
func (p *reconciliation) isSeen(ctx context.Context, secret string, s slot) (bool, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretGVK)
	if err := p.Cached.Get(ctx, p.key(secret), head); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	order, err := resourceversion.CompareResourceVersion(head.ResourceVersion, s.version)
	return err == nil && order >= 0 && head.UID == s.uid, nil
}

// isWaitingFor reports whether a pod has not started yet and its addresses are all in a certificate.
func isWaitingFor(pod *corev1.Pod, s slot) bool {
	addresses := pods.Addresses(pod)
	return pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && len(addresses) > 0 &&
		s.addresses.HasAll(addresses...) && pod.Annotations[pods.AnnotationServed] != addressText(pod)
}

// addressText is the value of pods.AnnotationServed.
func addressText(pod *corev1.Pod) string {
	var out []string
	for _, a := range pods.Addresses(pod) {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (p *reconciliation) serveOne(ctx context.Context, pod *corev1.Pod) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{pods.AnnotationServed: addressText(pod)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the annotation of pod %s: %w", pod.Name, err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = p.Writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, body))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another pod has its name
		return nil
	}
	if err != nil {
		return fmt.Errorf("telling pod %s of its certificate: %w", pod.Name, err)
	}
	return nil
}
