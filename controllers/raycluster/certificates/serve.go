package certificates

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// serve marks the pods that wait once their address is in the certificate of their role: a pod that changes makes its
// kubelet bring the volumes up to date at once, which it does every minute or so otherwise. Each pod costs one request in its
// life.
func (p *reconciliation) serve(ctx context.Context, all []corev1.Pod) error {
	for _, leaf := range p.plan.leaves {
		known := p.memory.slots[leaf.secret] // the zero value of a Secret that is not known has no addresses
		for _, pod := range podsOfRole(leaf.role, all) {
			if known.foreign || !isWaitingFor(pod, known) {
				continue
			}
			if seen, err := p.isSeen(ctx, leaf.secret, known); err != nil {
				return err
			} else if !seen {
				break
			}
			if err := p.serveOne(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSeen reports whether watches have brought the Secret as it was written, to us and so most likely to kubelets: one that is
// notified too early reads the old one. The event that is still to come requeues the cluster.
func (p *reconciliation) isSeen(ctx context.Context, secret string, s slot) (bool, error) {
	head, err := capability.GetMetadata(ctx, p.Cached, secretGVK, p.key(secret))
	return head != nil && head.UID == s.uid && (head.ResourceVersion == s.version || isNewer(head, s.version)), err
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
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, pods.AnnotationServed, addressText(pod))
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := p.Writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another pod has its name
		return nil
	}
	if err != nil {
		return fmt.Errorf("telling pod %s of its certificate: %w", pod.Name, err)
	}
	return nil
}
