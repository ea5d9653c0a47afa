package config

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ModelRegistry holds the settings of the components modelregistry and modelcatalog; see registrySettings for what
// they mean.
type ModelRegistry struct {
	// Namespace is the only one in which registries and the catalog may live; empty is any.
	Namespace string
	// DefaultDomain is the domain of Routes; empty is that of the cluster.
	DefaultDomain string
	Gateway       RegistryGateway
	// Exposure is that of all components.
	Exposure Exposure
	// TLS is that of all listeners.
	TLS tlsprofile.Profile
	// Images are those of custom resources that name none; none is empty.
	Images RegistryImages
	// ValidateInReconciler: objects may have come past the webhooks.
	ValidateInReconciler bool
	StorageMigration     StorageMigration

	// EnableModelCatalog is false when what an older operator left of the catalog is to go. RequestModelCatalog is true when
	// a user asked for it: there shall be a Catalog even where no older operator ran one.
	EnableModelCatalog, RequestModelCatalog bool
	// SkipCatalogDatabase leaves out the catalog's own database.
	SkipCatalogDatabase bool
	// CatalogPostgresUser and CatalogPostgresDatabase go into the Secret of a new database.
	CatalogPostgresUser, CatalogPostgresDatabase string
}

// RegistryGateway says how HTTPRoutes are published.
type RegistryGateway struct {
	// Domain is the host of the Gateway; empty switches gateway mode off.
	Domain string
	// Name and Namespace name the Gateway.
	Name, Namespace string
	// RouteNamespace is where HTTPRoutes are made.
	RouteNamespace string
	// Unnamed: no settings name the namespaces, and the usual ones are not those of administrators.
	Unnamed bool
}

// On returns the Gateway as it takes effect on a platform. The usual namespaces are safe on OpenShift only: elsewhere a tenant may make them.
func (g RegistryGateway) On(openShift bool) RegistryGateway {
	g.Unnamed = !openShift && (g.Namespace == "" || g.RouteNamespace == "")
	g.Namespace, g.RouteNamespace = cmp.Or(g.Namespace, OpenShiftGateways), cmp.Or(g.RouteNamespace, "redhat-ods-applications")
	return g
}

// RegistryImages are the images that the two components run.
type RegistryImages struct {
	REST, KubeRBACProxy, Postgres, CatalogData, BenchmarkData string
}

// StorageMigration names the versions that stored registries are moved between; equal values mean that none is.
type StorageMigration struct {
	Source, Target string
}

// defaultGateway is the Gateway of registries and of Ray clusters, on OpenShift in OpenShiftGateways.
var defaultGateway = RegistryGateway{Name: "data-science-gateway"}

// OpenShiftGateways is the namespace of the Gateways of OpenShift, where no tenant can make a Gateway.
const OpenShiftGateways = "openshift-ingress"

const defaultCatalogData = "quay.io/opendatahub/odh-model-metadata-collection:latest"

func registrySettings(m *ModelRegistry) []setting {
	g := &m.Gateway
	return []setting{
		{env: []string{"REGISTRIES_NAMESPACE"}, key: "modelregistry.namespace", set: optional(namespace, &m.Namespace),
			help: "the only namespace for registries and the catalog; if empty, any namespace"},
		{env: []string{"DEFAULT_DOMAIN"}, key: "modelregistry.defaultDomain", set: domain(&m.DefaultDomain),
			help: "domain for Routes whose registry names none; if empty, the domain of the cluster"},
		{env: []string{"GATEWAY_DOMAIN"}, key: "modelregistry.gatewayDomain", set: gatewayDomain(&g.Domain),
			help: "host of the Gateway, with or without a scheme; if set, registries are published through the Gateway"},
		{env: []string{"GATEWAY_NAME"}, key: "modelregistry.gatewayName", fallback: defaultGateway.Name,
			set: subdomain(&g.Name), help: "Gateway to which the HTTPRoutes of registries and of models of ModelMesh attach"},
		{env: []string{"GATEWAY_NAMESPACE"}, key: "modelregistry.gatewayNamespace", set: optional(namespace, &g.Namespace),
			help: "namespace of that Gateway; if empty, openshift-ingress on OpenShift, and elsewhere there are no HTTPRoutes"},
		{env: []string{"HTTPROUTE_NAMESPACE"}, key: "modelregistry.routeNamespace", set: optional(namespace, &g.RouteNamespace),
			help: "namespace of the HTTPRoutes of registries; if empty, redhat-ods-applications on OpenShift, and elsewhere there are none"},
		{env: []string{"RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE", "REST_IMAGE"}, key: "modelregistry.image",
			fallback: "quay.io/opendatahub/model-registry:latest", set: requiredImage(&m.Images.REST), help: "image of registries and the catalog"},
		{env: []string{"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE", "KUBE_RBAC_PROXY_IMAGE"}, key: "modelregistry.kubeRBACProxyImage",
			fallback: "quay.io/openshift/origin-kube-rbac-proxy:latest", set: requiredImage(&m.Images.KubeRBACProxy), help: "image of kube-rbac-proxy in front of registries and the catalog"},
		{env: []string{"RELATED_IMAGE_POSTGRESQL_16_IMAGE", "POSTGRES_IMAGE"}, key: "modelregistry.postgresImage",
			fallback: "quay.io/sclorg/postgresql-16-c10s:latest", set: requiredImage(&m.Images.Postgres), help: "image of the databases of registries and the catalog"},
		{env: []string{"ENABLE_WEBHOOKS"}, key: "modelregistry.webhooks", fallback: "true", shape: aSwitch, set: only("false", &m.ValidateInReconciler),
			help: "registries are validated by webhooks; if false, they are validated in every reconcile instead"},
		{env: []string{"STORAGE_MIGRATION_SOURCE_VERSION"}, key: "modelregistry.storageMigrationSource", fallback: "v1alpha1",
			set: version(&m.StorageMigration.Source), help: "API version from which stored registries are migrated; if it equals the target, none are"},
		{env: []string{"STORAGE_MIGRATION_TARGET_VERSION"}, key: "modelregistry.storageMigrationTarget", fallback: "v1beta1",
			set: version(&m.StorageMigration.Target), help: "API version to which stored registries are migrated"},
	}
}

func catalogSettings(m *ModelRegistry) []setting {
	return []setting{
		{env: []string{"ENABLE_MODEL_CATALOG"}, key: "modelcatalog.bootstrap", shape: aSwitch, set: m.setCatalog,
			help: "true: create the Catalog if there is none; unset: only where an earlier operator ran one; false: remove what an earlier operator left"},
		{env: []string{"SKIP_MODEL_CATALOG_DB_CREATION"}, key: "modelcatalog.skipDatabase", fallback: "false", shape: aSwitch,
			set: only("true", &m.SkipCatalogDatabase), help: "create no database for the catalog"},
		{env: []string{"CATALOG_POSTGRES_USER"}, key: "modelcatalog.postgresUser", fallback: "catalog_user",
			set: required(&m.CatalogPostgresUser), help: "user of a new database of the catalog"},
		{env: []string{"CATALOG_POSTGRES_DATABASE"}, key: "modelcatalog.postgresDatabase", fallback: "model_catalog",
			set: required(&m.CatalogPostgresDatabase), help: "name of a new database of the catalog"},
		{env: []string{"RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE", "CATALOG_DATA_IMAGE"}, key: "modelcatalog.dataImage",
			fallback: defaultCatalogData, set: requiredImage(&m.Images.CatalogData), help: "image with the data of the catalog"},
		{env: []string{"RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE", "BENCHMARK_DATA_IMAGE"}, key: "modelcatalog.benchmarkImage",
			fallback: defaultCatalogData, set: requiredImage(&m.Images.BenchmarkData), help: "image with the performance data of the catalog"},
	}
}

// optional accepts nothing beside what another parser accepts.
func optional(parse func(*string) func(string) error, dst *string) func(string) error {
	return func(raw string) error {
		if strings.TrimSpace(raw) == "" {
			*dst = ""
			return nil
		}
		return parse(dst)(raw)
	}
}

// The originals of these switches understood one word each, and no installation must stop at another.

func only(word string, dst *bool) func(string) error {
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
	return checked(dst, func(text string) bool { return text == "" || isDomain(text) },
		"must be a domain such as apps.example.org, without a scheme, a port or a path")
}

// gatewayDomain keeps a scheme before the domain: installations have it, and addresses that they publish start with it.
func gatewayDomain(dst *string) func(string) error {
	return checked(dst, func(text string) bool {
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
	return checked(dst, versionPattern.MatchString, "must be an API version such as v1beta1")
}
