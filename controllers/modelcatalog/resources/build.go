package resources

import (
	"cmp"

	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Inputs is what the objects of a Catalog depend on beside its spec.
type Inputs struct {
	registry.Publishing
	// Domain is that of Routes, empty where none is known.
	Domain string
	Images config.RegistryImages
	// SkipDatabase: the database of that name is not made here.
	SkipDatabase bool
	// AdminGroups may change the sources.
	AdminGroups []string
	// Sources are the names of the ConfigMaps with further sources, in the order in which they are read.
	Sources []string
	// Proxy is that of the cluster.
	Proxy EgressProxy
	// HubKeys are the keys for Hugging Face, and HubKeysHash is another one for every content of them.
	HuggingFaceKeys     []HuggingFaceKey
	HuggingFaceKeysHash string
}

// HubKey is a key for Hugging Face: a variable of the server, and where its value stands.
type HuggingFaceKey struct{ Variable, Secret, Key string }

// Proxied reports whether clients are authenticated by a sidecar.
func HasProxy(c *aihubv1alpha1.Catalog) bool {
	return authProxy(c).Mode != aihubv1alpha1.Disabled
}

// readable reports whether every user of the cluster may read the catalog.
func isReadableByAll(c *aihubv1alpha1.Catalog) bool {
	return c.Spec.Access == nil || c.Spec.Access.Authenticated != aihubv1alpha1.Disabled
}

// database is what the spec says of the database, which may be nothing.
func databaseSpec(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogDatabase {
	return ptr.Deref(c.Spec.Database, aihubv1alpha1.CatalogDatabase{})
}

// External is the database that the spec names, nil when there is none.
func ExternalDatabase(c *aihubv1alpha1.Catalog) *aihubv1alpha1.ExternalDatabase {
	return databaseSpec(c).External
}

// Connection is the database that the spec describes by a Secret alone, nil when there is none.
func DatabaseConnection(c *aihubv1alpha1.Catalog) *aihubv1alpha1.DatabaseConnection {
	return databaseSpec(c).Connection
}

// Elsewhere reports whether the spec names an existing database.
func HasExternalDatabase(c *aihubv1alpha1.Catalog) bool {
	return ExternalDatabase(c) != nil || DatabaseConnection(c) != nil
}

// OwnsDatabase reports whether a database is run beside the server.
func OwnsDatabase(c *aihubv1alpha1.Catalog, in Inputs) bool {
	return !in.SkipDatabase && !HasExternalDatabase(c)
}

// EncryptsDatabase reports whether the database that is run beside the server serves TLS.
func EncryptsDatabase(c *aihubv1alpha1.Catalog) bool {
	return !HasExternalDatabase(c) && databaseSpec(c).ServerTLS == aihubv1alpha1.Enabled
}

// ServingSecret names the Secret with the certificate of the proxy.
func ServingSecret(c *aihubv1alpha1.Catalog) string {
	return cmp.Or(authProxy(c).CertificateSecretName, CertificateSecret)
}

// Build returns the objects that belong to a Catalog and follow it, in the order in which they are written: identity,
// sources, server, rights, database, publication. The ConfigMaps of users and the Secrets are kept otherwise, because their
// content is not known from the Catalog.
func Build(c *aihubv1alpha1.Catalog, in Inputs) (apply.Desired, error) {
	var objects apply.Desired
	objects.Add(serviceAccount(c), defaultSourcesConfigMap(c), ServerDeployment(c, in), service(c, in), readerRole(c))
	if isReadableByAll(c) {
		objects.Add(readerBinding(c))
	}
	if resources.ReplicasOrOne(c.Spec.Replicas) > 1 {
		objects.Add(resources.DisruptionBudget(objectMeta(c, Name), Selector(Name)))
	}
	objects.Add(adminRole(c), egressPolicy(c))
	if len(in.AdminGroups) > 0 {
		objects.Add(adminRoleBinding(c, in.AdminGroups))
	}
	if OwnsDatabase(c, in) {
		objects = append(objects, BuildDatabase(c, in)...)
	}
	objects = append(objects, Published(c, in)...)
	if HasProxy(c) {
		config, err := registry.ProxyConfig(objectMeta(c, ProxyConfig), Name)
		if err != nil {
			return nil, err
		}
		objects.Add(config)
		objects = append(objects, apply.Object{Config: authDelegatorBinding(c), Ownership: apply.Unowned})
	}
	return objects, nil
}
