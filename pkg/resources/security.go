package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// ContainerSecurity is what the restricted Pod Security level demands of each container
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/); the rest may stand at the pod.
func ContainerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// SidecarSecurity meets the restricted level in pods of which nothing is known, with a read-only root file system.
func SidecarSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return ContainerSecurity().
		WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// PodSecurity is what the restricted level demands of pods whose containers have ContainerSecurity.
func PodSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}
