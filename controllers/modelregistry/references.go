package modelregistry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// resolveReferences sets the rollout hashes of pod templates and reports missing Secrets and ConfigMaps. It recreates a Deployment whose
// selector differs.
func (r *registryReconciler) resolveReferences(ctx context.Context, m, effective *v1beta1.ModelRegistry, in *resources.Inputs) error {
	var databaseRefs []reference.Reference
	if generatesDatabase(m) {
		databaseRefs = databaseReferences(m)
	}
	serverRefs := serverReferences(effective)
	resolved, err := r.references.Resolve(ctx, m.UID, m.Namespace, slices.Concat(serverRefs, certificateReferences(effective), databaseRefs))
	if err != nil {
		return err
	}
	missingPodRefs, err := r.references.FindMissing(ctx, m.Namespace, reference.OfPods(&m.Spec.Pods))
	if err != nil {
		return err
	}
	r.stateOf(m).missingReferences = slices.Concat(resolved.Missing, missingPodRefs)
	reference.SetCondition(&m.Status.Conditions, m.Generation, m.Namespace, append(missingUserObjects(m, resolved.Missing), missingPodRefs...))
	in.ServerHash, err = r.rolloutHash(ctx, m, resources.ServiceName(m), resources.ServerSelector(m), resolved, serverRefs)
	if err == nil && generatesDatabase(m) {
		in.DatabaseHash, err = r.rolloutHash(ctx, m, resources.DatabaseName(m), resources.DatabaseSelector(m), resolved, databaseRefs)
	}
	return err
}

// rolloutHash returns the hash of the objects that the pods of a Deployment consume. A new hash rolls the pods.
func (r *registryReconciler) rolloutHash(ctx context.Context, m *v1beta1.ModelRegistry, deployment string, selector map[string]string,
	resolved reference.Resolved, refs []reference.Reference,
) (reference.RolloutHash, error) {
	d, err := registry.FindDeployment(ctx, r.cached, r.apiReader, m.Namespace, deployment)
	if err == nil {
		err = r.recreateOnSelectorChange(ctx, m, d, selector)
	}
	if err != nil {
		return reference.RolloutHash{}, err
	}
	return reference.ForDeployment(d, resolved.Hashes, refs)
}

// serverReferences returns the Secrets and ConfigMaps that the server reads at its start only, so that a change must roll its pods. The
// proxy reloads the serving certificate itself. Its ConfigMap is constant and managed.
func serverReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	var refs []reference.Reference
	switch {
	case m.Spec.Postgres != nil:
		p := m.Spec.Postgres
		if p.ConnectionSecretName != "" {
			refs = append(refs, secretReferences(&v1beta1.SecretKeyValue{Name: p.ConnectionSecretName, Key: pkgresources.ConnectionURIKey})...)
		}
		refs = append(refs, secretReferences(p.PasswordSecret, p.SSLPasswordSecret, p.SSLCertificateSecret, p.SSLKeySecret)...)
		refs = append(refs, caReferences(p.SSLRootCertificateSecret, p.SSLRootCertificateConfigMap)...)
	case m.Spec.MySQL != nil:
		c := m.Spec.MySQL
		refs = append(refs, secretReferences(c.PasswordSecret, c.SSLCertificateSecret, c.SSLKeySecret)...)
		refs = append(refs, caReferences(c.SSLRootCertificateSecret, c.SSLRootCertificateConfigMap)...)
		refs = append(refs, caDirectoryReferences(c.SSLRootCertificatesSecretName, c.SSLRootCertificatesConfigMapName)...)
	}
	return reference.Merge(refs)
}

// certificateReferences returns the Secrets with certificate and key of the proxy, without which its pods do not start.
func certificateReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	if m.Spec.KubeRBACProxy == nil {
		return nil
	}
	cert, key := resources.ServingCertificateRefs(m)
	return reference.Merge(secretReferences(cert, key))
}

// databaseReferences returns the Secrets that the pods of a generated database read at their start.
func databaseReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.Secret, Name: resources.CredentialsName(m), Keys: []string{resources.KeyPassword, resources.KeyUsername}}}
	if resources.EncryptsDatabase(m) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: resources.DatabaseTLSName(m), Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
	}
	return refs
}

// missingUserObjects returns the missing objects that users must create: neither credentials nor certificate of a generated database, nor a
// managed serving certificate.
func missingUserObjects(m *v1beta1.ModelRegistry, missing []reference.Missing) []reference.Missing {
	return slices.DeleteFunc(slices.Clone(missing), func(x reference.Missing) bool {
		serving := managesCertificate(m) && x.Name == resources.ServingSecretName(m)
		database := generatesDatabase(m) && isDatabaseSecret(m, x.Name) && (x.Key == "" || x.Name == resources.CredentialsName(m))
		return x.Kind == reference.Secret && (serving || database)
	})
}

// isDatabaseSecret reports whether the operator creates a Secret for a generated database.
func isDatabaseSecret(m *v1beta1.ModelRegistry, name string) bool {
	return name == resources.CredentialsName(m) || name == resources.DatabaseTLSName(m)
}

func secretReferences(keys ...*v1beta1.SecretKeyValue) []reference.Reference {
	var refs []reference.Reference
	for _, k := range keys {
		if k != nil {
			refs = append(refs, reference.Reference{Kind: reference.Secret, Name: k.Name, Keys: []string{k.Key}})
		}
	}
	return refs
}

// caReferences returns the object that mountFile mounts.
func caReferences(secret *v1beta1.SecretKeyValue, configMap *v1beta1.ConfigMapKeyValue) []reference.Reference {
	if configMap == nil {
		return secretReferences(secret)
	}
	return []reference.Reference{{Kind: reference.ConfigMap, Name: configMap.Name, Keys: []string{configMap.Key}}}
}

// caDirectoryReferences returns the object that mountDirectory mounts. Empty names are ignored.
func caDirectoryReferences(secret, configMap string) []reference.Reference {
	if configMap == "" {
		return []reference.Reference{{Kind: reference.Secret, Name: secret}}
	}
	return []reference.Reference{{Kind: reference.ConfigMap, Name: configMap}}
}
