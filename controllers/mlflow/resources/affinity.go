package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// joinServer sends a chore that mounts the volume to the node of the server,
// because the volume can be attached to that one only. Affinity to nodes is kept
// beside it. A user who says to which pods a pod is near or far has decided the
// matter: the two might contradict each other, and the chore would never run.
func joinServer(m *mlflowv1.MLflow, pod *corev1ac.PodSpecApplyConfiguration) {
	if m.Spec.Storage == nil || slices.Contains(m.Spec.Storage.AccessModes, corev1.ReadWriteMany) {
		return
	}
	if own := m.Spec.Affinity; own != nil && (own.PodAffinity != nil || own.PodAntiAffinity != nil) {
		return
	}
	if pod.Affinity == nil {
		pod.WithAffinity(corev1ac.Affinity())
	}
	pod.Affinity.WithPodAffinity(corev1ac.PodAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(corev1ac.PodAffinityTerm().
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selector(m))).
			WithTopologyKey(corev1.LabelHostname)))
}
