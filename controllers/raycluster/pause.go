package raycluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// pauseRetry is the pause until the namespace of a cluster is read again, which no event announces.
const pauseRetry = time.Minute

// paused tells whether a cluster is left alone but for its policies and certificates. All editors of a RayCluster can set the
// annotation, so it counts with an administrator's word only: the setting, or the same annotation on the namespace.
func (r *clusters) paused(ctx context.Context, cluster *unstructured.Unstructured, in resources.Inputs) (bool, time.Duration, error) {
	known := r.memory.of(cluster)
	if !in.Mode.Active() || !isPaused(cluster.GetAnnotations()) {
		known.resolve(topicPaused)
		return false, 0, nil
	}
	allowed := in.AllowPause
	if !allowed {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := r.live.Get(ctx, client.ObjectKey{Name: cluster.GetNamespace()}, namespace)
		if client.IgnoreNotFound(err) != nil {
			return false, 0, fmt.Errorf("reading Namespace %s: %w", cluster.GetNamespace(), err)
		}
		allowed = isPaused(namespace.Annotations)
	}
	if !allowed {
		r.warn(cluster, topicPaused, ReasonPauseIgnored, fmt.Sprintf("annotation %s has no effect: an administrator has to allow it "+
			"by raycluster.allowPause, or by the same annotation on namespace %s", names.PausedAnnotation, cluster.GetNamespace()))
		return false, pauseRetry, nil
	}
	r.note(cluster, topicPaused, ReasonPaused, fmt.Sprintf(
		"annotation %s is set: only NetworkPolicies and certificates are kept up to date", names.PausedAnnotation))
	return true, pauseRetry, nil
}

func isPaused(annotations map[string]string) bool {
	paused, _ := names.Paused(annotations)
	return paused
}
