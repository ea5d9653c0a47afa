package mlflow

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// references returns the Secrets and ConfigMaps whose changes require a rollout of the servers: store URIs, environment, serving
// certificates and the sources of the CA bundle.
func references(m *mlflowv1.MLflow, all ...resources.Server) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.ConfigMap, Name: resources.PlatformCAName, Optional: true}}
	for _, s := range all {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: s.Secret, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
	}
	for _, store := range resources.Stores(m) {
		if store.From != nil {
			refs = append(refs, servers.EnvReferences([]corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: store.From}}})...)
		}
	}
	refs = append(refs, servers.EnvReferences(m.Spec.Env)...)
	refs = append(refs, servers.EnvFromReferences(m.Spec.EnvFrom)...)
	if m.Spec.CABundleConfigMap != nil {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: m.Spec.CABundleConfigMap.Name})
	}
	return refs
}

// isServingCertificate reports whether a Secret holds the serving certificate of a server.
func isServingCertificate(m *mlflowv1.MLflow, secret string) bool {
	return slices.ContainsFunc(resources.Servers(m), func(s resources.Server) bool { return s.Secret == secret })
}

// rolloutHashes returns the RolloutHash of each server, which changes when a Secret or ConfigMap that its pods consume changes. A condition
// lists missing objects even if running pods do not need them, except a serving certificate that the user does not provide.
func (r *mlflowReconciler) rolloutHashes(ctx context.Context, m *mlflowv1.MLflow, namespace string) (map[string]reference.RolloutHash, error) {
	refs := servers.References{
		Rollouts: map[string][]reference.Reference{}, Mounted: mountedReferences(m),
		IsManaged: func(x reference.Missing) bool { return isServingCertificate(m, x.Name) && !providesCertificate(m) },
	}
	for _, s := range resources.Servers(m) {
		refs.Rollouts[s.Name] = references(m, s)
	}
	if name := resources.NameOf(m); resources.Archives(m) {
		ref, hash := resources.ArchivalReference(m)
		refs.Rollouts[name], refs.Hashes = append(refs.Rollouts[name], ref), map[string]string{ref.ID(): hash}
	}
	hashes, _, err := r.ResolveReferences(ctx, m, namespace, refs)
	return hashes, err
}

// providesCertificate reports whether the user provides the serving certificates.
func providesCertificate(m *mlflowv1.MLflow) bool {
	return m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
}

// mountedReferences returns the objects that pods need to start and whose changes reach running pods without a rollout.
func mountedReferences(m *mlflowv1.MLflow) []reference.Reference {
	pods := resources.Pods(m)
	return servers.PodReferences(&pods)
}

// consumes reports whether the pods of the servers consume the object.
func consumes(m *mlflowv1.MLflow, kind reference.Kind, name string) bool {
	all := append(references(m, resources.Servers(m)...), mountedReferences(m)...)
	return slices.ContainsFunc(all, func(r reference.Reference) bool { return r.Kind == kind && r.Name == name })
}

const caCommonName = "odh-platform-operator-mlflow-ca"

// authorities returns the CAs of the certificates that this operator issued, by server name.
func (r *mlflowReconciler) authorities(m *mlflowv1.MLflow) map[string][]byte {
	all := map[string][]byte{}
	for _, s := range resources.Servers(m) {
		all[s.Name] = r.Certificates.CABundle(m.UID, s.Secret)
	}
	return all
}

// reconcileCertificates issues and renews the serving certificates where neither the platform nor a user provides them. ConditionCertificate
// reports a failure for any server.
func (r *mlflowReconciler) reconcileCertificates(ctx context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	var specs []servingcert.Spec
	for _, s := range resources.Servers(m) {
		specs = append(specs, servingcert.Spec{
			Namespace: in.Namespace, Name: s.Secret, External: in.OpenShift || providesCertificate(m), CACommonName: caCommonName, Service: s.Name,
			Labels: resources.Labels(resources.NameOf(m)),
		})
	}
	if err := r.Certificates.Ensure(ctx, m, specs...); err != nil {
		return reportNonFatal(m, ConditionCertificate, ReasonCertificateFailed, "Maintaining the serving certificate failed", err)
	}
	return nil
}
