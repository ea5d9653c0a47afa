package mlflow

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// references lists the Secrets and ConfigMaps that the pods of servers consume: store URIs, environment, the serving
// certificates and the sources of the CA bundle.
func references(m *mlflowv1.MLflow) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.ConfigMap, Name: resources.PlatformCAName, Optional: true}}
	for _, s := range resources.Servers(m) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: s.Secret, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
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

// consumedBy leaves out the serving certificates of other servers.
func consumedBy(s resources.Server, m *mlflowv1.MLflow, refs []reference.Reference) []reference.Reference {
	return slices.DeleteFunc(slices.Clone(refs), func(r reference.Reference) bool {
		return r.Kind == reference.Secret && r.Name != s.Secret && isServing(m, r.Name)
	})
}

// isServing reports whether a Secret holds the serving certificate of a server.
func isServing(m *mlflowv1.MLflow, secret string) bool {
	return slices.ContainsFunc(resources.Servers(m), func(s resources.Server) bool { return s.Secret == secret })
}

// reportMissing names in a condition what the spec refers to and does not exist, also while pods that were started before
// run on without it. The serving certificate is left out unless the user provides it: the operator or the platform is about to make it.
func (r *objects) reportMissing(ctx context.Context, m *mlflowv1.MLflow, namespace string, missing []reference.Missing) error {
	missing = slices.DeleteFunc(slices.Clone(missing), func(x reference.Missing) bool {
		return isServing(m, x.Name) && (m.Spec.TLS == nil || m.Spec.TLS.Mode != mlflowv1.TLSProvided)
	})
	absent, err := r.references.Absent(ctx, namespace, mounted(m))
	if err != nil {
		return err
	}
	reference.Report(&m.Status.Conditions, m.Generation, namespace, append(missing, absent...))
	return nil
}

// mounted are what pods cannot start without, and follow by themselves.
func mounted(m *mlflowv1.MLflow) []reference.Reference {
	pods := resources.Pods(m)
	return reference.OfPods(&pods)
}

// refersTo reports whether the spec names an object that the server's pods consume.
func refersTo(m *mlflowv1.MLflow, kind reference.Kind, name string) bool {
	return slices.ContainsFunc(append(references(m), mounted(m)...), func(r reference.Reference) bool { return r.Kind == kind && r.Name == name })
}
