package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// SetScheduling sets the scheduling fields and pull secrets of the user on any pod of a custom resource.
func SetScheduling(pod *corev1ac.PodSpecApplyConfiguration, p *server.Pods) {
	for _, secret := range p.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	pod.WithNodeSelector(p.NodeSelector)
	pod.Tolerations = MustConvertEach[corev1ac.TolerationApplyConfiguration](p.Tolerations)
	if p.PriorityClassName != "" {
		pod.WithPriorityClassName(p.PriorityClassName)
	}
}

// ConfigureServerPod sets the scheduling, affinity, spread constraints and volumes of the user on a pod of the server. Its first container
// gets the mounts.
func ConfigureServerPod(pod *corev1ac.PodSpecApplyConfiguration, selector map[string]string, p *server.Pods) {
	SetScheduling(pod, p)
	if p.Affinity != nil {
		pod.Affinity = MustConvert[corev1ac.AffinityApplyConfiguration](p.Affinity)
	}
	AddSpreadConstraints(pod, selector, &p.CommonPods)
	AddVolumes(pod, &p.CommonPods)
}

// AddSpreadConstraints sets the spread constraints of the user on a pod of the server, with its selector as default.
func AddSpreadConstraints(pod *corev1ac.PodSpecApplyConfiguration, selector map[string]string, common *server.CommonPods) {
	pod.TopologySpreadConstraints = MustConvertEach[corev1ac.TopologySpreadConstraintApplyConfiguration](common.TopologySpreadConstraints)
	for i := range pod.TopologySpreadConstraints {
		if pod.TopologySpreadConstraints[i].LabelSelector == nil {
			pod.TopologySpreadConstraints[i].WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selector))
		}
	}
}

// AddVolumes adds the volumes of the user to a pod, and the mounts to its first container. The prefix prevents collisions with names of the
// operator.
func AddVolumes(pod *corev1ac.PodSpecApplyConfiguration, common *server.CommonPods) {
	const prefix = "extra-"
	for i := range common.Volumes {
		pod.WithVolumes(MustConvert[corev1ac.VolumeApplyConfiguration](&common.Volumes[i]).WithName(prefix + common.Volumes[i].Name))
	}
	for i := range common.VolumeMounts {
		pod.Containers[0].WithVolumeMounts(MustConvert[corev1ac.VolumeMountApplyConfiguration](&common.VolumeMounts[i]).WithName(prefix + common.VolumeMounts[i].Name))
	}
}

// ReplicasOrOne returns the replicas of the spec, 1 if unset.
func ReplicasOrOne(replicas *int32) int32 { return ptr.Deref(replicas, 1) }

// DisruptionBudget allows the eviction of one pod at a time. Pods that are not ready can always be evicted.
func DisruptionBudget(meta metav1.ObjectMeta, selector map[string]string) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(policyv1ac.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)))
}

// ScaleStatus returns the status of the scale subresource for a Deployment.
func ScaleStatus(d *appsv1.Deployment, selector map[string]string) server.Scale {
	return server.Scale{Replicas: d.Status.Replicas, Selector: labels.FormatLabels(selector)}
}

// ServiceMonitor selects Services by labels for the Prometheus operator, in the given namespaces or else in that of the monitor.
func ServiceMonitor(meta metav1.ObjectMeta, services map[string]string, endpoint monitoringv1.Endpoint, tls monitoringv1.SafeTLSConfig,
	namespaces ...string,
) runtime.ApplyConfiguration {
	endpoint.TLSConfig = &monitoringv1.TLSConfig{SafeTLSConfig: tls}
	return Typed(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind), &monitoringv1.ServiceMonitor{ObjectMeta: meta, Spec: monitoringv1.ServiceMonitorSpec{
		Selector:          metav1.LabelSelector{MatchLabels: services},
		NamespaceSelector: monitoringv1.NamespaceSelector{MatchNames: namespaces},
		Endpoints:         []monitoringv1.Endpoint{endpoint},
	}})
}
