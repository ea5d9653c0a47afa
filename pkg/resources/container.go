package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// FromSecret is an environment variable with the value of a key of a Secret.
func SecretEnvVar(variable, secret, key string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(variable).WithValueFrom(corev1ac.EnvVarSource().
		WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(secret).WithKey(key)))
}

// Requirements are requests and limits of a container, as far as there are any. Claims of devices are left out.
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

// RequirementsOr are those that a user gave, even if they are empty, and else these.
func RequirementsOrDefault(given *corev1.ResourceRequirements, requests, limits corev1.ResourceList) *corev1ac.ResourceRequirementsApplyConfiguration {
	if given != nil {
		requests, limits = given.Requests, given.Limits
	}
	return Requirements(requests, limits)
}
