package modelregistry

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// resolveReferences sets the rollout hashes of pod templates and reports missing Secrets and ConfigMaps. It deletes a Deployment whose
// selector differs, so that the next reconcile recreates the Deployment.
func (r *registryReconciler) resolveReferences(ctx context.Context, m, effective *v1beta1.ModelRegistry, in *resources.Inputs) error {
	rollouts := map[string][]reference.Reference{resources.ServiceName(m): serverReferences(effective)}
	selectors := map[string]map[string]string{resources.ServiceName(m): resources.ServerSelector(m)}
	if generatesDatabase(m) {
		rollouts[resources.DatabaseName(m)], selectors[resources.DatabaseName(m)] = databaseReferences(m), resources.DatabaseSelector(m)
	}
	hashes, missing, err := r.ResolveReferences(ctx, m, m.Namespace, servers.References{
		Rollouts: rollouts, Required: certificateReferences(effective), Mounted: servers.PodReferences(&m.Spec.Pods),
		IsManaged: func(x reference.Missing) bool { return createsMissing(m, x) },
		Inspect: func(live *appsv1.Deployment) error {
			return r.recreateOnSelectorChange(ctx, m, live, selectors[live.Name])
		},
	})
	r.stateOf(m).missingReferences = missing
	in.ServerHash, in.DatabaseHash = hashes[resources.ServiceName(m)], hashes[resources.DatabaseName(m)]
	return err
}

// serverReferences returns the Secrets and ConfigMaps that the server reads only when it starts. A change of one requires a rollout. The
// proxy reloads the serving certificate, and its ConfigMap never changes.
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
	return refs
}

// certificateReferences returns the Secrets with certificate and key of the proxy. Pods with the proxy do not start without them.
func certificateReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	if m.Spec.KubeRBACProxy == nil {
		return nil
	}
	cert, key := resources.ServingCertificateRefs(m)
	return reference.Merge(secretReferences(cert, key))
}

// databaseReferences returns the Secrets that the pods of a generated database read when they start.
func databaseReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.Secret, Name: resources.CredentialsName(m), Keys: []string{resources.KeyPassword, resources.KeyUsername}}}
	if resources.EncryptsDatabase(m) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: resources.DatabaseTLSName(m), Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
	}
	return refs
}

// createsMissing reports whether operator or platform creates a missing object: credentials or certificate of a generated database, or a
// managed serving certificate.
func createsMissing(m *v1beta1.ModelRegistry, missing reference.Missing) bool {
	serving := managesCertificate(m) && missing.Name == resources.ServingSecretName(m)
	database := generatesDatabase(m) && isDatabaseSecret(m, missing.Name) && (missing.Key == "" || missing.Name == resources.CredentialsName(m))
	return missing.Kind == reference.Secret && (serving || database)
}

// isDatabaseSecret reports whether a name is that of a Secret that the operator creates for a generated database.
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

// caDirectoryReferences returns the object that mountDirectory mounts. reference.Merge drops it if both names are empty.
func caDirectoryReferences(secret, configMap string) []reference.Reference {
	if configMap == "" {
		return []reference.Reference{{Kind: reference.Secret, Name: secret}}
	}
	return []reference.Reference{{Kind: reference.ConfigMap, Name: configMap}}
}
