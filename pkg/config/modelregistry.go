package config

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ModelRegistry holds the settings of the components modelregistry and modelcatalog; see their tags for their meaning.
type ModelRegistry struct {
	// Namespace is the only allowed namespace of registries and the catalog; empty means any.
	Namespace string `env:"REGISTRIES_NAMESPACE" key:"modelregistry.namespace" parse:"namespace?" help:"the only namespace for registries and the catalog; if empty, any namespace"`
	// DefaultDomain is the domain of Routes; empty means the domain of the cluster.
	DefaultDomain string          `env:"DEFAULT_DOMAIN" key:"modelregistry.defaultDomain" parse:"domain" help:"domain for Routes whose registry names none; if empty, the domain of the cluster"`
	Gateway       RegistryGateway `section:""`
	// Exposure is the exposure of all components.
	Exposure Exposure
	// TLS is the profile of servers in pods.
	TLS tlsprofile.Profile
	// Images are the default images of custom resources; none is empty.
	Images RegistryImages `section:""`
	// ValidateInReconciler is true if no webhooks validate objects.
	ValidateInReconciler bool             `env:"ENABLE_WEBHOOKS" key:"modelregistry.webhooks" default:"true" parse:"false" help:"registries are validated by webhooks; if false, they are validated in every reconcile instead"`
	StorageMigration     StorageMigration `section:""`
	// EnableModelCatalog is false if the objects of a legacy operator for the catalog must be deleted. RequestModelCatalog is true if a user
	// enabled the catalog: a Catalog is then created even if no legacy operator ran one.
	EnableModelCatalog, RequestModelCatalog bool
	// SkipCatalogDatabase disables the database of the catalog.
	SkipCatalogDatabase bool
	// CatalogPostgresUser and CatalogPostgresDatabase are stored in the Secret of a new database.
	CatalogPostgresUser, CatalogPostgresDatabase string
}

// RegistryGateway configures the Gateway and the HTTPRoutes of registries and the catalog. Models of ModelMesh use the same Gateway.
type RegistryGateway struct {
	// Domain is the host of the Gateway; empty disables gateway mode.
	Domain string `env:"GATEWAY_DOMAIN" key:"modelregistry.gatewayDomain" parse:"gatewayDomain" help:"host of the Gateway, with or without a scheme; if set, registries are published through the Gateway"`
	// Name and Namespace identify the Gateway.
	Name      string `env:"GATEWAY_NAME" key:"modelregistry.gatewayName" default:"data-science-gateway" parse:"subdomain" help:"Gateway to which the HTTPRoutes of registries and of models of ModelMesh attach"`
	Namespace string `env:"GATEWAY_NAMESPACE" key:"modelregistry.gatewayNamespace" parse:"namespace?" help:"namespace of the Gateway; if empty, openshift-ingress on OpenShift, and elsewhere there are no HTTPRoutes"`
	// RouteNamespace is the namespace of the HTTPRoutes.
	RouteNamespace string `env:"HTTPROUTE_NAMESPACE" key:"modelregistry.routeNamespace" parse:"namespace?" help:"namespace of the HTTPRoutes of registries; if empty, redhat-ods-applications on OpenShift, and elsewhere there are none"`
	// NamespacesUnset is true if a namespace is not configured, and its default can be created by tenants.
	NamespacesUnset bool
}

// ForPlatform returns the effective Gateway on a platform. The default namespaces are reserved on OpenShift only.
func (g RegistryGateway) ForPlatform(openShift bool) RegistryGateway {
	g.NamespacesUnset = !openShift && (g.Namespace == "" || g.RouteNamespace == "")
	g.Namespace, g.RouteNamespace = cmp.Or(g.Namespace, OpenShiftGateways), cmp.Or(g.RouteNamespace, "redhat-ods-applications")
	return g
}

// RegistryImages are the images of the two components.
type RegistryImages struct {
	REST          string `env:"RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE REST_IMAGE" key:"modelregistry.image" default:"quay.io/opendatahub/model-registry:latest" parse:"requiredImage" help:"image of registries and the catalog"`
	KubeRBACProxy string `env:"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE KUBE_RBAC_PROXY_IMAGE" key:"modelregistry.kubeRBACProxyImage" default:"quay.io/openshift/origin-kube-rbac-proxy:latest" parse:"requiredImage" help:"image of kube-rbac-proxy in front of registries and the catalog"`
	Postgres      string `env:"RELATED_IMAGE_POSTGRESQL_16_IMAGE POSTGRES_IMAGE" key:"modelregistry.postgresImage" default:"quay.io/sclorg/postgresql-16-c10s:latest" parse:"requiredImage" help:"image of the databases of registries and the catalog"`
	// CatalogData and BenchmarkData are in catalogSettings.
	CatalogData, BenchmarkData string
}

// StorageMigration holds the API versions of the storage migration; equal values disable it.
type StorageMigration struct {
	Source string `env:"STORAGE_MIGRATION_SOURCE_VERSION" key:"modelregistry.storageMigrationSource" default:"v1alpha1" parse:"version" help:"API version from which stored registries are migrated; if it equals the target, none are"`
	Target string `env:"STORAGE_MIGRATION_TARGET_VERSION" key:"modelregistry.storageMigrationTarget" default:"v1beta1" parse:"version" help:"API version to which stored registries are migrated"`
}

// defaultGateway is the Gateway of Ray clusters unless exposure.kind is gateway. On OpenShift its namespace is OpenShiftGateways.
var defaultGateway = RegistryGateway{Name: "data-science-gateway"}

// OpenShiftGateways is the namespace of Gateways on OpenShift, in which tenants cannot create one.
const OpenShiftGateways = "openshift-ingress"

const defaultCatalogData = "quay.io/opendatahub/odh-model-metadata-collection:latest"

func catalogSettings(m *ModelRegistry) []setting {
	return []setting{
		{env: []string{"ENABLE_MODEL_CATALOG"}, key: "modelcatalog.bootstrap", valueType: typeBool, set: m.setCatalog,
			help: "true: create the Catalog if there is none; unset: only if a legacy operator ran one; false: delete the objects of a legacy operator"},
		{env: []string{"SKIP_MODEL_CATALOG_DB_CREATION"}, key: "modelcatalog.skipDatabase", defaultValue: "false", valueType: typeBool,
			set: equals("true", &m.SkipCatalogDatabase), help: "create no database for the catalog"},
		{env: []string{"CATALOG_POSTGRES_USER"}, key: "modelcatalog.postgresUser", defaultValue: "catalog_user",
			set: required(&m.CatalogPostgresUser), help: "user of a new database of the catalog"},
		{env: []string{"CATALOG_POSTGRES_DATABASE"}, key: "modelcatalog.postgresDatabase", defaultValue: "model_catalog",
			set: required(&m.CatalogPostgresDatabase), help: "name of a new database of the catalog"},
		{env: []string{"RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE", "CATALOG_DATA_IMAGE"}, key: "modelcatalog.dataImage",
			defaultValue: defaultCatalogData, set: requiredImage(&m.Images.CatalogData), help: "image with the data of the catalog"},
		{env: []string{"RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE", "BENCHMARK_DATA_IMAGE"}, key: "modelcatalog.benchmarkImage",
			defaultValue: defaultCatalogData, set: requiredImage(&m.Images.BenchmarkData), help: "image with the performance data of the catalog"},
	}
}

// optional returns a parser that accepts an empty string, too.
func optional(parse func(*string) func(string) error, dst *string) func(string) error {
	return func(raw string) error {
		if strings.TrimSpace(raw) == "" {
			*dst = ""
			return nil
		}
		return parse(dst)(raw)
	}
}

// equals returns a parser for the variables of legacy operators, which recognized one word and ignored all other values.
func equals(word string, dst *bool) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw) == word
		return nil
	}
}

func (m *ModelRegistry) setCatalog(raw string) error {
	raw = strings.TrimSpace(raw)
	m.EnableModelCatalog, m.RequestModelCatalog = raw != "false", raw != "false" && raw != ""
	return nil
}

var (
	domainPattern  = regexp.MustCompile(`^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]{0,61}[a-zA-Z0-9]))*$`)
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

func isDomain(text string) bool { return len(text) <= 253 && domainPattern.MatchString(text) }

func domain(dst *string) func(string) error {
	return validated(dst, func(text string) bool { return text == "" || isDomain(text) },
		"must be a domain such as apps.example.org, without a scheme, a port or a path")
}

// gatewayDomain parses a domain with an optional scheme: existing installations have it, and published URLs start with it.
func gatewayDomain(dst *string) func(string) error {
	return validated(dst, func(text string) bool {
		return text == "" || isDomain(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"))
	}, "must be a domain such as gateway.example.org, without a port or a path")
}

func requiredImage(dst *string) func(string) error {
	return func(raw string) error {
		if err := required(dst)(raw); err != nil {
			return err
		}
		return image(dst)(raw)
	}
}

func version(dst *string) func(string) error {
	return validated(dst, versionPattern.MatchString, "must be an API version such as v1beta1")
}
