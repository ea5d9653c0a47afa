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

// Inputs holds the parameters of the objects that are not in the spec.
type Inputs struct {
	registry.Publishing
	// Domain is the domain of Routes, "" if unknown.
	Domain string
	Images config.RegistryImages
	// SkipDatabase: the operator does not run the database.
	SkipDatabase bool
	// AdminGroups may update the sources.
	AdminGroups []string
	// Sources are the names of the ConfigMaps with labelled sources, in reading order.
	Sources []string
	// Proxy is the egress proxy of the cluster.
	Proxy EgressProxy
	// HuggingFaceKeys are the keys for Hugging Face. HuggingFaceKeysHash changes with their content.
	HuggingFaceKeys     []HuggingFaceKey
	HuggingFaceKeysHash string
}

// HuggingFaceKey maps a variable of the server to a key of a Secret.
type HuggingFaceKey struct{ Variable, Secret, Key string }

// HasProxy reports whether a sidecar authenticates clients.
func HasProxy(c *aihubv1alpha1.Catalog) bool {
	return authProxy(c).Mode != aihubv1alpha1.Disabled
}

// isReadableByAll reports whether every authenticated user may read the catalog.
func isReadableByAll(c *aihubv1alpha1.Catalog) bool {
	return c.Spec.Access == nil || c.Spec.Access.Authenticated != aihubv1alpha1.Disabled
}

// databaseSpec returns the database of the spec, which may be empty.
func databaseSpec(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogDatabase {
	return ptr.Deref(c.Spec.Database, aihubv1alpha1.CatalogDatabase{})
}

// ExternalDatabase returns the external database of the spec by host, or nil.
func ExternalDatabase(c *aihubv1alpha1.Catalog) *aihubv1alpha1.ExternalDatabase {
	return databaseSpec(c).External
}

// DatabaseConnection returns the external database of the spec by Secret, or nil.
func DatabaseConnection(c *aihubv1alpha1.Catalog) *aihubv1alpha1.DatabaseConnection {
	return databaseSpec(c).Connection
}

// HasExternalDatabase reports whether the spec names an external database.
func HasExternalDatabase(c *aihubv1alpha1.Catalog) bool {
	return ExternalDatabase(c) != nil || DatabaseConnection(c) != nil
}

// OwnsDatabase reports whether the operator runs the database.
func OwnsDatabase(c *aihubv1alpha1.Catalog, in Inputs) bool {
	return !in.SkipDatabase && !HasExternalDatabase(c)
}

// EncryptsDatabase reports whether the managed database serves TLS.
func EncryptsDatabase(c *aihubv1alpha1.Catalog) bool {
	return !HasExternalDatabase(c) && databaseSpec(c).ServerTLS == aihubv1alpha1.Enabled
}

// ServingSecret returns the name of the Secret with the certificate of the proxy.
func ServingSecret(c *aihubv1alpha1.Catalog) string {
	return cmp.Or(authProxy(c).CertificateSecretName, CertificateSecret)
}

// Build returns the objects of a Catalog in the order in which they are applied. The ConfigMaps of users and the Secrets are not included,
// because their content does not depend on the Catalog.
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
