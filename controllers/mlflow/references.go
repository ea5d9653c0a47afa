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

// references lists the Secrets and ConfigMaps that the pods of servers consume: store URIs, environment, the serving
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

// isServing reports whether a Secret holds the serving certificate of a server.
func isServingCertificate(m *mlflowv1.MLflow, secret string) bool {
	return slices.ContainsFunc(resources.Servers(m), func(s resources.Server) bool { return s.Secret == secret })
}

// reportMissing names in a condition what the spec refers to and does not exist, also while pods that were started before
// run on without it. The serving certificate is left out unless the user provides it: the operator or the platform is about to make it.
func (r *mlflowReconciler) reportMissing(ctx context.Context, m *mlflowv1.MLflow, namespace string, missing []reference.Missing) error {
	missing = slices.DeleteFunc(slices.Clone(missing), func(x reference.Missing) bool {
		return isServingCertificate(m, x.Name) && (m.Spec.TLS == nil || m.Spec.TLS.Mode != mlflowv1.TLSProvided)
	})
	absent, err := r.references.FindMissing(ctx, namespace, mountedReferences(m))
	if err != nil {
		return err
	}
	reference.Report(&m.Status.Conditions, m.Generation, namespace, append(missing, absent...))
	return nil
}

// mounted are what pods cannot start without, and follow by themselves.
func mountedReferences(m *mlflowv1.MLflow) []reference.Reference {
	pods := resources.Pods(m)
	return reference.OfPods(&pods)
}

// refersTo reports whether the spec names an object that the server's pods consume.
func consumes(m *mlflowv1.MLflow, kind reference.Kind, name string) bool {
	all := append(references(m, resources.Servers(m)...), mountedReferences(m)...)
	return slices.ContainsFunc(all, func(r reference.Reference) bool { return r.Kind == kind && r.Name == name })
}

const certificateAuthority = "odh-platform-operator-mlflow-ca"

// keepers make what keeps the certificates of one MLflow, in the order of its servers.
func (r *mlflowReconciler) certificateKeepers() (keepers []*servingcert.Keeper) {
	for range 2 {
		keepers = append(keepers, &servingcert.Keeper{Cached: r.cached, Live: r.apiReader, Applier: r.applier, Clock: r.clock})
	}
	return keepers
}

// authorities are the CAs of the certificates that were issued here, by the names of servers.
func (r *mlflowReconciler) authorities(m *mlflowv1.MLflow) map[string][]byte {
	all := map[string][]byte{}
	for i, s := range resources.Servers(m) {
		all[s.Name] = r.certificates[i].Authority(m.UID)
	}
	return all
}

// keepCertificates issues the serving certificates where neither the platform nor a user does, and renews what it issued. All have one
// condition, which is about the first that is not what it should be.
func (r *mlflowReconciler) reconcileCertificates(ctx context.Context, m *mlflowv1.MLflow) error {
	in, servers := r.inputs(), resources.Servers(m)
	provided := in.OpenShift || m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	var errs []error
	var found *metav1.Condition
	for i, s := range servers {
		seen := m.DeepCopy() // each keeper sets or removes the condition
		errs = append(errs, r.certificates[i].Keep(ctx, seen, servingcert.Wanted{
			Namespace: in.Namespace, Name: s.Secret, Provided: provided, Authority: certificateAuthority, Service: s.Name,
			Labels: resources.Labels(resources.NameOf(m)),
		}))
		if found == nil {
			found = meta.FindStatusCondition(seen.Status.Conditions, ConditionCertificate)
		}
	}
	for _, unused := range r.certificates[len(servers):] {
		unused.Forget(m.UID)
	}
	if err := errors.Join(errs...); err != nil || found == nil {
		return reportNonFatal(m, ConditionCertificate, ReasonCertificateFailed, "The serving certificate could not be kept", err)
	}
	setCondition(m, ConditionCertificate, found.Status, found.Reason, found.Message)
	return nil
}
