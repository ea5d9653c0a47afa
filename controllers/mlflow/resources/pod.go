package resources

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// newPod returns a pod with the given container and parts, and the security context, scheduling fields and pull secrets of the spec.
func newPod(m *mlflowv1.MLflow, in Inputs, account string, container *corev1ac.ContainerApplyConfiguration, parts ...part,
) *corev1ac.PodSpecApplyConfiguration {
	container.EnvFrom = resources.MustConvertEach[corev1ac.EnvFromSourceApplyConfiguration](m.Spec.EnvFrom)
	pod := corev1ac.PodSpec().
		WithServiceAccountName(account).
		WithAutomountServiceAccountToken(true).
		WithSecurityContext(podSecurity(m, in))
	for _, p := range parts {
		container.WithArgs(p.args...).WithVolumeMounts(p.mounts...)
	}
	pod.WithContainers(container)
	for _, p := range parts {
		pod.WithVolumes(p.volumes...).WithInitContainers(p.initContainers...).WithContainers(p.sidecars...)
	}
	placement := Pods(m)
	resources.SetScheduling(pod, &placement)
	if m.Spec.Affinity != nil {
		pod.Affinity = resources.MustConvert[corev1ac.AffinityApplyConfiguration](m.Spec.Affinity)
	}
	resources.AddVolumes(pod, &m.Spec.CommonPods)
	return pod
}

// Pods returns the pod fields of the spec as the type that other kinds embed.
func Pods(m *mlflowv1.MLflow) server.Pods {
	return server.Pods{ImagePullSecrets: m.Spec.ImagePullSecrets, NodeSelector: m.Spec.NodeSelector, Tolerations: m.Spec.Tolerations, CommonPods: m.Spec.CommonPods}
}

// defaultFSGroup is the default fsGroup if spec.storage is set. On OpenShift, the SecurityContextConstraints assign one per namespace.
const defaultFSGroup = 1001

// podSecurity returns spec.podSecurityContext, even if empty, or a default that the restricted Pod Security Standard allows.
func podSecurity(m *mlflowv1.MLflow, in Inputs) *corev1ac.PodSecurityContextApplyConfiguration {
	if m.Spec.PodSecurityContext != nil {
		return resources.MustConvert[corev1ac.PodSecurityContextApplyConfiguration](m.Spec.PodSecurityContext)
	}
	security := resources.PodSecurity()
	if m.Spec.Storage != nil && !in.OpenShift {
		security.WithFSGroup(defaultFSGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

// containerSecurity returns spec.securityContext, even if empty, or a restricted default.
func containerSecurity(m *mlflowv1.MLflow) *corev1ac.SecurityContextApplyConfiguration {
	if m.Spec.SecurityContext == nil {
		return resources.ContainerSecurity().WithReadOnlyRootFilesystem(true)
	}
	return resources.MustConvert[corev1ac.SecurityContextApplyConfiguration](m.Spec.SecurityContext)
}

// resourcesWithDefaults returns the resources of the spec, with a default for each request and limit that is not set. It omits a default with
// which a request would exceed its limit. Resources without requests and limits get no defaults.
func resourcesWithDefaults(spec *corev1.ResourceRequirements, defaults *corev1ac.ResourceRequirementsApplyConfiguration,
) *corev1ac.ResourceRequirementsApplyConfiguration {
	if spec == nil {
		return defaults
	}
	result := resources.MustConvert[corev1ac.ResourceRequirementsApplyConfiguration](spec)
	if len(spec.Requests)+len(spec.Limits) == 0 {
		return result
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for name, request := range *defaults.Requests {
		if limit, found := spec.Limits[name]; !found || request.Cmp(limit) <= 0 {
			requests[name] = request
		}
	}
	for name, limit := range *defaults.Limits {
		if request, found := spec.Requests[name]; !found || limit.Cmp(request) >= 0 {
			limits[name] = limit
		}
	}
	maps.Copy(requests, spec.Requests)
	maps.Copy(limits, spec.Limits)
	result.Requests, result.Limits = nil, nil
	return result.WithRequests(requests).WithLimits(limits)
}

// smallResources returns the default resources of CronJobs and check Jobs.
func smallResources() *corev1ac.ResourceRequirementsApplyConfiguration {
	return requirements("100m", "256Mi", "500m", "512Mi")
}

// addServerAffinity schedules a pod to the node of the server, unless the volume can be mounted on many nodes. A pod affinity or
// anti-affinity of the spec takes precedence, because both terms together could make the pod unschedulable.
func addServerAffinity(m *mlflowv1.MLflow, pod *corev1ac.PodSpecApplyConfiguration) {
	isReadWriteMany := slices.Contains(m.Spec.Storage.AccessModes, corev1.ReadWriteMany)
	if affinity := m.Spec.Affinity; isReadWriteMany || affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		return
	}
	if pod.Affinity == nil {
		pod.WithAffinity(corev1ac.Affinity())
	}
	pod.Affinity.WithPodAffinity(corev1ac.PodAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(corev1ac.PodAffinityTerm().
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(Tracking(m).Selector())).
			WithTopologyKey(corev1.LabelHostname)))
}
