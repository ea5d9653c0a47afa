package modelmesh

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// BuildEtcdSecret renders the Secret by which the pods of a namespace reach etcd.
func BuildEtcdSecret(name, namespace string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, namespace).
		WithLabels(map[string]string{labelManagedBy: controllerName}).
		WithData(data)
}
