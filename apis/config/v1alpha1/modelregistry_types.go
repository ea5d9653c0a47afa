package v1alpha1

// ModelRegistry holds the settings of the component modelregistry.
type ModelRegistry struct {
	// Namespace is the only namespace in which registries and the catalog may live. Default: REGISTRIES_NAMESPACE, else empty:
	// any namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// DefaultDomain is the domain of Routes whose registry names none. Default: DEFAULT_DOMAIN, else that of the cluster.
	// +optional
	DefaultDomain string `json:"defaultDomain,omitempty"`

	// GatewayDomain is the host under which the Gateway is reached; it switches gateway mode on. Default: GATEWAY_DOMAIN.
	// +optional
	GatewayDomain string `json:"gatewayDomain,omitempty"`

	// GatewayName is the Gateway that HTTPRoutes attach to. Default: GATEWAY_NAME, else "data-science-gateway".
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// GatewayNamespace is the namespace of that Gateway. Default: GATEWAY_NAMESPACE, else "openshift-ingress".
	// +optional
	GatewayNamespace string `json:"gatewayNamespace,omitempty"`

	// RouteNamespace is the namespace of HTTPRoutes. Default: HTTPROUTE_NAMESPACE, else "redhat-ods-applications".
	// +optional
	RouteNamespace string `json:"routeNamespace,omitempty"`

	// Image runs registries and the catalog. Default: RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE, else REST_IMAGE, else
	// "quay.io/opendatahub/model-registry:latest".
	// +optional
	Image string `json:"image,omitempty"`

	// KubeRBACProxyImage runs the proxy in front of them. Default: RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE, else
	// KUBE_RBAC_PROXY_IMAGE, else "quay.io/openshift/origin-kube-rbac-proxy:latest".
	// +optional
	KubeRBACProxyImage string `json:"kubeRBACProxyImage,omitempty"`

	// PostgresImage runs databases. Default: RELATED_IMAGE_POSTGRESQL_16_IMAGE, else POSTGRES_IMAGE, else
	// "quay.io/sclorg/postgresql-16-c10s:latest".
	// +optional
	PostgresImage string `json:"postgresImage,omitempty"`

	// Webhooks says that registries come through the webhooks of this operator; false makes it check them in every reconcile
	// instead. Default: ENABLE_WEBHOOKS, of which only "false" means no, else true.
	// +optional
	Webhooks *bool `json:"webhooks,omitempty"`

	// StorageMigrationSource is the version that stored objects are moved from; equal to the target, none is. Default:
	// STORAGE_MIGRATION_SOURCE_VERSION, else "v1alpha1".
	// +optional
	StorageMigrationSource string `json:"storageMigrationSource,omitempty"`

	// StorageMigrationTarget is the version that stored objects are moved to. Default: STORAGE_MIGRATION_TARGET_VERSION, else
	// "v1beta1".
	// +optional
	StorageMigrationTarget string `json:"storageMigrationTarget,omitempty"`
}

// ModelCatalog holds the settings of the component modelcatalog.
type ModelCatalog struct {
	// Bootstrap true creates the Catalog in the registries namespace if there is none; false removes what an earlier operator
	// left of one. Default: ENABLE_MODEL_CATALOG, else unset: the Catalog is created only where an earlier operator ran one.
	// +optional
	Bootstrap *bool `json:"bootstrap,omitempty"`

	// SkipDatabase leaves out the catalog's own database. Default: SKIP_MODEL_CATALOG_DB_CREATION, of which only "true" means yes,
	// else false.
	// +optional
	SkipDatabase *bool `json:"skipDatabase,omitempty"`

	// PostgresUser is the user of a new database. Default: CATALOG_POSTGRES_USER, else "catalog_user".
	// +optional
	PostgresUser string `json:"postgresUser,omitempty"`

	// PostgresDatabase is the name of a new database. Default: CATALOG_POSTGRES_DATABASE, else "model_catalog".
	// +optional
	PostgresDatabase string `json:"postgresDatabase,omitempty"`

	// DataImage carries the catalog's data. Default: RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE, else CATALOG_DATA_IMAGE,
	// else "quay.io/opendatahub/odh-model-metadata-collection:latest".
	// +optional
	DataImage string `json:"dataImage,omitempty"`

	// BenchmarkImage carries the performance data. Default: RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE, else
	// BENCHMARK_DATA_IMAGE, else "quay.io/opendatahub/odh-model-metadata-collection:latest".
	// +optional
	BenchmarkImage string `json:"benchmarkImage,omitempty"`
}
