package mlflow

import (
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// references lists the Secrets and ConfigMaps that the server's pods consume: store URIs, environment, the serving
// certificate and the sources of the CA bundle.
func references(m *mlflowv1.MLflow) []reference.Reference {
	refs := []reference.Reference{
		{Kind: reference.Secret, Name: tlsSecretName, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}},
		{Kind: reference.ConfigMap, Name: platformCAName, Optional: true},
	}
	for _, selector := range []*corev1.SecretKeySelector{
		m.Spec.BackendStoreURIFrom, m.Spec.ReadReplicaBackendStoreURIFrom, m.Spec.RegistryStoreURIFrom,
	} {
		if selector != nil {
			refs = append(refs, reference.OfEnv([]corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: selector}}})...)
		}
	}
	refs = append(refs, reference.OfEnv(m.Spec.Env)...)
	refs = append(refs, reference.OfEnvFrom(m.Spec.EnvFrom)...)
	if m.Spec.CABundleConfigMap != nil {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: m.Spec.CABundleConfigMap.Name})
	}
	return reference.Merge(refs)
}

// refersTo reports whether the server's pods consume an object.
func refersTo(m *mlflowv1.MLflow, kind reference.Kind, name string) bool {
	for _, r := range references(m) {
		if r.Kind == kind && r.Name == name {
			return true
		}
	}
	return false
}
