package modelregistry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// addReferences adds what the pods were started with, and names what of it is missing. A Deployment that cannot become what it should be is
// recreated.
func (r *registryReconciler) resolveReferences(ctx context.Context, m, used *v1beta1.ModelRegistry, in *resources.Inputs) error {
	var ofDatabase []reference.Reference
	if generatesDatabase(m) {
		ofDatabase = databaseReferences(m)
	}
	ofServer := serverReferences(used)
	resolved, err := r.references.Resolve(ctx, m.UID, m.Namespace, slices.Concat(ofServer, certificateReferences(used), ofDatabase))
	if err != nil {
		return err
	}
	absent, err := r.references.FindMissing(ctx, m.Namespace, reference.OfPods(&m.Spec.Pods))
	if err != nil {
		return err
	}
	r.stateOf(m).missingReferences = slices.Concat(resolved.Missing, absent)
	reference.Report(&m.Status.Conditions, m.Generation, m.Namespace, append(missingUserObjects(m, resolved.Missing), absent...))
	in.ServerHash, err = r.rolloutHash(ctx, m, resources.ServiceName(m), resources.ServerSelector(m), resolved, ofServer)
	if err == nil && generatesDatabase(m) {
		in.DatabaseHash, err = r.rolloutHash(ctx, m, resources.DatabaseName(m), resources.DatabaseSelector(m), resolved, ofDatabase)
	}
	return err
}

// stamp decides whether running pods must be replaced because something they consume has changed.
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

// references are the Secrets and ConfigMaps that the pods of the server read when they start: a change rolls the pods. The
// serving certificate is not among them, since the proxy reads it again by itself, nor is the rule of the proxy, which is the same
// for the whole life of a registry and written by us: what differs is put right at once, and so is that of older releases.
func serverReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	var refs []reference.Reference
	switch {
	case m.Spec.Postgres != nil:
		p := m.Spec.Postgres
		if p.ConnectionSecretName != "" {
			refs = append(refs, secretReferences(&v1beta1.SecretKeyValue{Name: p.ConnectionSecretName, Key: common.ConnectionURIKey})...)
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

// servingReferences are the Secrets with certificate and key of the proxy, without which its pods do not start.
func certificateReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	if m.Spec.KubeRBACProxy == nil {
		return nil
	}
	cert, key := resources.ServingFiles(m)
	return reference.Merge(secretReferences(cert, key))
}

// databaseReferences are what the pods of a generated database read when they start.
func databaseReferences(m *v1beta1.ModelRegistry) []reference.Reference {
	refs := []reference.Reference{{Kind: reference.Secret, Name: resources.CredentialsName(m), Keys: []string{resources.KeyPassword, resources.KeyUsername}}}
	if resources.EncryptsDatabase(m) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: resources.DatabaseTLSName(m), Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}})
	}
	return refs
}

// awaitedOfUsers leaves out what is about to be made without users: credentials and certificate of a generated database, and the
// serving certificate unless the spec names one.
func missingUserObjects(m *v1beta1.ModelRegistry, missing []reference.Missing) []reference.Missing {
	return slices.DeleteFunc(slices.Clone(missing), func(x reference.Missing) bool {
		serving := managesCertificate(m) && x.Name == resources.ServingSecretName(m)
		database := generatesDatabase(m) && isDatabaseSecret(m, x.Name) && (x.Key == "" || x.Name == resources.CredentialsName(m))
		return x.Kind == reference.Secret && (serving || database)
	})
}

// madeForDatabase reports whether a Secret is made for a generated database.
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

// ofAuthority is the one of the two that is mounted, see file.
func caReferences(secret *v1beta1.SecretKeyValue, configMap *v1beta1.ConfigMapKeyValue) []reference.Reference {
	if configMap == nil {
		return secretReferences(secret)
	}
	return []reference.Reference{{Kind: reference.ConfigMap, Name: configMap.Name, Keys: []string{configMap.Key}}}
}

// ofFolder is the one of the two that is mounted, see folder. An empty name is none.
func caDirectoryReferences(secret, configMap string) []reference.Reference {
	if configMap == "" {
		return []reference.Reference{{Kind: reference.Secret, Name: secret}}
	}
	return []reference.Reference{{Kind: reference.ConfigMap, Name: configMap}}
}
