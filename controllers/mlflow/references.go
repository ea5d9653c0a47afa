package mlflow

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// references returns the Secrets and ConfigMaps whose changes require a rollout of the servers: store URIs, environment, serving
// certificates and the sources of the CA bundle.
func references(m *mlflowv1.MLflow, servers ...resources.Server) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.ConfigMap, Name: resources.PlatformCAName, Optional: true}}
	for _, s := range servers {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: s.Secret, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
	}
	for _, store := range resources.Stores(m) {
		if store.From != nil {
			refs = append(refs, reference.OfEnv([]corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: store.From}}})...)
		}
	}
	refs = append(refs, reference.OfEnv(m.Spec.Env)...)
	refs = append(refs, reference.OfEnvFrom(m.Spec.EnvFrom)...)
	if m.Spec.CABundleConfigMap != nil {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: m.Spec.CABundleConfigMap.Name})
	}
	return reference.Merge(refs)
}

// isServingCertificate reports whether a Secret holds the serving certificate of a server.
func isServingCertificate(m *mlflowv1.MLflow, secret string) bool {
	return slices.ContainsFunc(resources.Servers(m), func(s resources.Server) bool { return s.Secret == secret })
}

// reportMissing sets a condition that lists the missing Secrets and ConfigMaps, also while running pods do not need them. It omits
// the serving certificate unless the user provides it, because the operator or the platform will issue it.
func (r *mlflowReconciler) reportMissing(ctx context.Context, m *mlflowv1.MLflow, namespace string, missing []reference.Missing) error {
	missing = slices.DeleteFunc(slices.Clone(missing), func(x reference.Missing) bool {
		return isServingCertificate(m, x.Name) && (m.Spec.TLS == nil || m.Spec.TLS.Mode != mlflowv1.TLSProvided)
	})
	missingMounts, err := r.references.FindMissing(ctx, namespace, mountedReferences(m))
	if err != nil {
		return err
	}
	reference.SetCondition(&m.Status.Conditions, m.Generation, namespace, append(missing, missingMounts...))
	return nil
}

// mountedReferences returns the objects that pods need to start and whose changes reach running pods without a rollout.
func mountedReferences(m *mlflowv1.MLflow) []reference.Reference {
	pods := resources.Pods(m)
	return reference.OfPods(&pods)
}

// consumes reports whether the pods of the servers consume the object.
func consumes(m *mlflowv1.MLflow, kind reference.Kind, name string) bool {
	all := append(references(m, resources.Servers(m)...), mountedReferences(m)...)
	return slices.ContainsFunc(all, func(r reference.Reference) bool { return r.Kind == kind && r.Name == name })
}

const certificateAuthority = "odh-platform-operator-mlflow-ca"

// certificateKeepers returns a Keeper for each possible server, in the order of resources.Servers.
func (r *mlflowReconciler) certificateKeepers() (keepers []*servingcert.Issuer) {
	for range 2 {
		keepers = append(keepers, &servingcert.Issuer{Cached: r.cached, Live: r.apiReader, Applier: r.applier, Clock: r.clock})
	}
	return keepers
}

// authorities returns the CAs of the certificates that this operator issued, by server name.
func (r *mlflowReconciler) authorities(m *mlflowv1.MLflow) map[string][]byte {
	all := map[string][]byte{}
	for i, s := range resources.Servers(m) {
		all[s.Name] = r.certificates[i].CABundle(m.UID)
	}
	return all
}

// reconcileCertificates issues and renews the serving certificates where neither the platform nor a user provides them. Their common
// condition reports the first failure.
func (r *mlflowReconciler) reconcileCertificates(ctx context.Context, m *mlflowv1.MLflow) error {
	in, servers := r.inputs(), resources.Servers(m)
	provided := in.OpenShift || m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	var errs []error
	var condition *metav1.Condition
	for i, s := range servers {
		scratch := m.DeepCopy() // each Keeper sets or removes the condition
		errs = append(errs, r.certificates[i].Ensure(ctx, scratch, servingcert.Spec{
			Namespace: in.Namespace, Name: s.Secret, External: provided, CACommonName: certificateAuthority, Service: s.Name,
			Labels: resources.Labels(resources.NameOf(m)),
		}))
		if condition == nil {
			condition = meta.FindStatusCondition(scratch.Status.Conditions, ConditionCertificate)
		}
	}
	for _, unused := range r.certificates[len(servers):] {
		unused.Forget(m.UID)
	}
	if err := errors.Join(errs...); err != nil || condition == nil {
		return reportNonFatal(m, ConditionCertificate, ReasonCertificateFailed, "Maintaining the serving certificate failed", err)
	}
	setCondition(m, ConditionCertificate, condition.Status, condition.Reason, condition.Message)
	return nil
}
