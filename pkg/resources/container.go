package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// SecretEnvVar returns an environment variable with the value of a key of a Secret.
func SecretEnvVar(variable, secret, key string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(variable).WithValueFrom(corev1ac.EnvVarSource().
		WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(secret).WithKey(key)))
}

// Requirements returns requests and limits of a container without empty lists.
func Requirements(requests, limits corev1.ResourceList) *corev1ac.ResourceRequirementsApplyConfiguration {
	r := corev1ac.ResourceRequirements()
	if len(requests) > 0 {
		r.WithRequests(requests)
	}
	if len(limits) > 0 {
		r.WithLimits(limits)
	}
	return r
}

// RequirementsOrDefault returns the resources of the user, even if empty, or else the defaults. Device claims are dropped.
func RequirementsOrDefault(requested *corev1.ResourceRequirements, requests, limits corev1.ResourceList) *corev1ac.ResourceRequirementsApplyConfiguration {
	if requested != nil {
		requests, limits = requested.Requests, requested.Limits
	}
	return Requirements(requests, limits)
}

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
