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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// annotatePods annotates waiting pods once the certificate of their role contains their addresses: a change of a pod makes its kubelet update
// the volumes immediately instead of about every minute. Each pod costs one request.
func (r *reconciliation) annotatePods(ctx context.Context, all []corev1.Pod) error {
	for _, leaf := range r.plan.leaves {
		state := r.memory.secrets[leaf.secret] // has no addresses if the Secret is unknown
		for _, pod := range podsOfRole(leaf.role, all) {
			if state.foreign || !needsAnnotation(pod, state) {
				continue
			}
			if cached, err := r.isCached(ctx, leaf.secret, state); err != nil {
				return err
			} else if !cached {
				break
			}
			if err := r.annotatePod(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// isCached reports whether the cache contains the Secret in the version of s or a newer one. Kubelets then probably have it too: a kubelet
// that is notified earlier reads the previous version. The pending event of the Secret requeues the RayCluster.
func (r *reconciliation) isCached(ctx context.Context, secret string, s secretState) (bool, error) {
	metadata, err := objectmeta.Get(ctx, r.Cached, secretGVK, r.key(secret))
	return metadata != nil && metadata.UID == s.uid && (metadata.ResourceVersion == s.version || isNewer(metadata, s.version)), err
}

// needsAnnotation reports whether a pending pod lacks the annotation although all its addresses are in the certificate.
func needsAnnotation(pod *corev1.Pod, s secretState) bool {
	addresses := pods.Addresses(pod)
	return pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && len(addresses) > 0 &&
		s.addresses.HasAll(addresses...) && pod.Annotations[pods.AnnotationCertificateFor] != annotationValue(pod)
}

// annotationValue returns the value of pods.AnnotationCertificateFor.
func annotationValue(pod *corev1.Pod) string {
	var out []string
	for _, a := range pods.Addresses(pod) {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (r *reconciliation) annotatePod(ctx context.Context, pod *corev1.Pod) error {
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, pods.AnnotationCertificateFor, annotationValue(pod))
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := r.Writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted, or recreated under the same name
		return nil
	}
	if err != nil {
		return fmt.Errorf("annotating pod %s with its certificate: %w", pod.Name, err)
	}
	return nil
}
