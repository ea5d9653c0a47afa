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

// newPod puts a container of the MLflow image into a pod, with what each part adds to both. It is confined and placed, and its images are
// pulled, as the user wants it.
func newPod(m *mlflowv1.MLflow, in Inputs, account string, container *corev1ac.ContainerApplyConfiguration, parts ...part,
) *corev1ac.PodSpecApplyConfiguration {
	container.EnvFrom = resources.MustApplyEach[corev1ac.EnvFromSourceApplyConfiguration](m.Spec.EnvFrom)
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
		pod.Affinity = resources.MustApply[corev1ac.AffinityApplyConfiguration](m.Spec.Affinity)
	}
	resources.AddVolumes(pod, &m.Spec.More)
	return pod
}

// Pods is what the spec says of pods, in the form that all servers share.
func Pods(m *mlflowv1.MLflow) server.Pods {
	return server.Pods{ImagePullSecrets: m.Spec.ImagePullSecrets, NodeSelector: m.Spec.NodeSelector, Tolerations: m.Spec.Tolerations, More: m.Spec.More}
}

// podGroup owns what is on the volume, where the platform gives pods no group of
// their own: an ordinary volume belongs to root.
const podGroup = 1001

// podSecurity is the block of the user as it stands, even an empty one, or a
// default that restricted namespaces admit.
func podSecurity(m *mlflowv1.MLflow, in Inputs) *corev1ac.PodSecurityContextApplyConfiguration {
	if m.Spec.PodSecurityContext != nil {
		return resources.MustApply[corev1ac.PodSecurityContextApplyConfiguration](m.Spec.PodSecurityContext)
	}
	security := resources.PodSecurity()
	if m.Spec.Storage != nil && !in.OpenShift {
		security.WithFSGroup(podGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

// containerSecurity is to containers what podSecurity is to pods.
func containerSecurity(m *mlflowv1.MLflow) *corev1ac.SecurityContextApplyConfiguration {
	if m.Spec.SecurityContext == nil {
		return resources.ContainerSecurity().WithReadOnlyRootFilesystem(true)
	}
	return resources.MustApply[corev1ac.SecurityContextApplyConfiguration](m.Spec.SecurityContext)
}

// resourcesOf are those of the user, with the defaults that do not contradict
// them: a default request above a given limit, and a default limit below a given
// request, are left out. An empty block asks for nothing.
func resourcesOf(given *corev1.ResourceRequirements, otherwise *corev1ac.ResourceRequirementsApplyConfiguration,
) *corev1ac.ResourceRequirementsApplyConfiguration {
	if given == nil {
		return otherwise
	}
	needed := resources.MustApply[corev1ac.ResourceRequirementsApplyConfiguration](given)
	if len(given.Requests)+len(given.Limits) == 0 {
		return needed
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for name, request := range *otherwise.Requests {
		if limit, bounded := given.Limits[name]; !bounded || request.Cmp(limit) <= 0 {
			requests[name] = request
		}
	}
	for name, limit := range *otherwise.Limits {
		if request, asked := given.Requests[name]; !asked || limit.Cmp(request) >= 0 {
			limits[name] = limit
		}
	}
	maps.Copy(requests, given.Requests)
	maps.Copy(limits, given.Limits)
	needed.Requests, needed.Limits = nil, nil
	return needed.WithRequests(requests).WithLimits(limits)
}

// choreResources are those of the jobs beside the server.
func choreResources() *corev1ac.ResourceRequirementsApplyConfiguration {
	return needs("100m", "256Mi", "500m", "512Mi")
}

// joinServer sends a chore that mounts the volume to the node of the server,
// because the volume can be attached to that one only. Affinity to nodes is kept
// beside it. A user who says to which pods a pod is near or far has decided the
// matter: the two might contradict each other, and the chore would never run.
func joinServer(m *mlflowv1.MLflow, pod *corev1ac.PodSpecApplyConfiguration) {
	manyNodes := slices.Contains(m.Spec.Storage.AccessModes, corev1.ReadWriteMany)
	if own := m.Spec.Affinity; manyNodes || own != nil && (own.PodAffinity != nil || own.PodAntiAffinity != nil) {
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
