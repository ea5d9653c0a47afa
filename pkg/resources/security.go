package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// ContainerSecurity returns the fields that the restricted Pod Security Standard requires of each container
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). PodSecurity has the others.
func ContainerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// SidecarSecurity returns a security context that meets the restricted standard in any pod, with a read-only root file system.
func SidecarSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return ContainerSecurity().
		WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// PodSecurity returns the fields that the restricted standard requires of pods whose containers have ContainerSecurity.
func PodSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}
