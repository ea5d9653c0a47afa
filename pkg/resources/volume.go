package resources

import corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

// Mount returns the mount of a volume.
func Mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

// ReadOnlyMount returns the read-only mount of a volume.
func ReadOnlyMount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return Mount(volume, path).WithReadOnly(true)
}

// SecretVolume returns a volume with the given keys of a Secret, or with all keys.
func SecretVolume(name, secret string, items ...*corev1ac.KeyToPathApplyConfiguration) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithItems(items...))
}
