package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func defaultRegistry() ModelRegistry {
	return ModelRegistry{
		Gateway:  RegistryGateway{Name: "data-science-gateway"},
		Exposure: Exposure{Kind: ExposeAuto},
		Images: RegistryImages{
			REST:          "quay.io/opendatahub/model-registry:latest",
			KubeRBACProxy: "quay.io/openshift/origin-kube-rbac-proxy:latest",
			Postgres:      "quay.io/sclorg/postgresql-16-c10s:latest",
			CatalogData:   defaultCatalogData,
			BenchmarkData: defaultCatalogData,
		},
		StorageMigration:   StorageMigration{Source: "v1alpha1", Target: "v1beta1"},
		EnableModelCatalog: true, CatalogPostgresUser: "catalog_user", CatalogPostgresDatabase: "model_catalog",
	}
}

// registryVariables returns the variables of the model registry and the model catalog with a value each, and the resulting settings.
func registryVariables() (map[string]string, ModelRegistry) {
	return map[string]string{
			"REGISTRIES_NAMESPACE": " registries ", "DEFAULT_DOMAIN": "apps.example.org", "GATEWAY_DOMAIN": "Gateway.example.org",
			"GATEWAY_NAME": "gate", "GATEWAY_NAMESPACE": "ingress", "HTTPROUTE_NAMESPACE": "apps",
			"RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE": "r:1", "RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE": "k:1",
			"RELATED_IMAGE_POSTGRESQL_16_IMAGE": "p:1", "RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE": "c:1",
			"RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE": "b:1", "ENABLE_WEBHOOKS": "false", "ENABLE_MODEL_CATALOG": "false",
			"STORAGE_MIGRATION_SOURCE_VERSION": "v1beta1", "STORAGE_MIGRATION_TARGET_VERSION": "v1",
			"SKIP_MODEL_CATALOG_DB_CREATION": "true", "CATALOG_POSTGRES_USER": "u", "CATALOG_POSTGRES_DATABASE": "d",
		}, ModelRegistry{
			Namespace: "registries", DefaultDomain: "apps.example.org",
			Gateway: RegistryGateway{Domain: "Gateway.example.org", Name: "gate", Namespace: "ingress", RouteNamespace: "apps"}, Exposure: Exposure{Kind: ExposeAuto},
			Images:               RegistryImages{REST: "r:1", KubeRBACProxy: "k:1", Postgres: "p:1", CatalogData: "c:1", BenchmarkData: "b:1"},
			ValidateInReconciler: true, StorageMigration: StorageMigration{Source: "v1beta1", Target: "v1"},
			SkipCatalogDatabase: true, CatalogPostgresUser: "u", CatalogPostgresDatabase: "d",
		}
}

// [modelregistry-61] Each variable overrides the default of its setting. A blank variable counts as unset.
func TestRegistryVariables(t *testing.T) {
	env, want := registryVariables()
	if diff := cmp.Diff(want, mustLoad(t, inputs{env: env}).ModelRegistry); diff != "" {
		t.Errorf("all set (-want +got):\n%s", diff)
	}
	for name := range env {
		env[name] = "  "
	}
	if diff := cmp.Diff(defaultRegistry(), mustLoad(t, inputs{env: env}).ModelRegistry); diff != "" {
		t.Errorf("all blank (-want +got):\n%s", diff)
	}
}

// The old name of an image variable takes effect if the new one is not set.
func TestLegacyRegistryVariables(t *testing.T) {
	newNames := map[string]string{
		"REST_IMAGE": "RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE", "KUBE_RBAC_PROXY_IMAGE": "RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE",
		"POSTGRES_IMAGE": "RELATED_IMAGE_POSTGRESQL_16_IMAGE", "CATALOG_DATA_IMAGE": "RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE",
		"BENCHMARK_DATA_IMAGE": "RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE",
	}
	legacyEnv, both := map[string]string{}, map[string]string{}
	for oldName, newName := range newNames {
		legacyEnv[oldName], both[oldName], both[newName] = "older/"+strings.ToLower(oldName), "older:1", "newer/"+strings.ToLower(oldName)
	}
	images := func(env map[string]string) []string {
		i := mustLoad(t, inputs{env: env}).ModelRegistry.Images
		return []string{i.REST, i.KubeRBACProxy, i.Postgres, i.CatalogData, i.BenchmarkData}
	}
	for prefix, env := range map[string]map[string]string{"older/": legacyEnv, "newer/": both} {
		want := []string{prefix + "rest_image", prefix + "kube_rbac_proxy_image", prefix + "postgres_image",
			prefix + "catalog_data_image", prefix + "benchmark_data_image"}
		if diff := cmp.Diff(want, images(env)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", prefix, diff)
		}
	}
}

// The file has the same effect as the variables.
func TestRegistryFile(t *testing.T) {
	_, want := registryVariables()
	got := mustLoad(t, inputs{}.withFile(`
modelregistry:
  namespace: registries
  defaultDomain: apps.example.org
  gatewayDomain: Gateway.example.org
  gatewayName: gate
  gatewayNamespace: ingress
  routeNamespace: apps
  image: "r:1"
  kubeRBACProxyImage: "k:1"
  postgresImage: "p:1"
  webhooks: false
  storageMigrationSource: v1beta1
  storageMigrationTarget: v1
modelcatalog:
  bootstrap: false
  skipDatabase: true
  postgresUser: u
  postgresDatabase: d
  dataImage: "c:1"
  benchmarkImage: "b:1"
`)).ModelRegistry
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("from the file (-want +got):\n%s", diff)
	}
}

// [modelregistry-62] As in the legacy operator, each boolean variable recognizes one value. In addition, any nonempty value of
// ENABLE_MODEL_CATALOG but false requests a Catalog.
func TestRegistrySwitches(t *testing.T) {
	for raw, want := range map[string]struct{ skip, bootstrap, validate bool }{
		"":      {false, true, false},
		"true":  {true, true, false},
		"false": {false, false, true},
		"yes":   {false, true, false},
		"False": {false, true, false},
	} {
		env := map[string]string{"SKIP_MODEL_CATALOG_DB_CREATION": raw, "ENABLE_MODEL_CATALOG": raw, "ENABLE_WEBHOOKS": raw}
		m := mustLoad(t, inputs{env: env}).ModelRegistry
		if requested := raw != "" && raw != "false"; m.RequestModelCatalog != requested {
			t.Errorf("%q: got RequestModelCatalog %t, want %t", raw, m.RequestModelCatalog, requested)
		}
		if m.SkipCatalogDatabase != want.skip || m.EnableModelCatalog != want.bootstrap || m.ValidateInReconciler != want.validate {
			t.Errorf("variables set to %q: got %+v, want %+v", raw, m, want)
		}
	}
}

// [modelregistry-63] An empty or valid namespace is accepted, an invalid one is an error at the start [D21].
func TestRegistriesNamespace(t *testing.T) {
	for raw, want := range map[string]string{"": "", " ": "", "odh-model-registries": "odh-model-registries"} {
		cfg, err := inputs{env: map[string]string{"REGISTRIES_NAMESPACE": raw}}.load()
		if err != nil || cfg.ModelRegistry.Namespace != want {
			t.Errorf("REGISTRIES_NAMESPACE=%q: got %q, error %v, want %q", raw, cfg.ModelRegistry.Namespace, err, want)
		}
	}
	if _, err := (inputs{env: map[string]string{"REGISTRIES_NAMESPACE": "invalid//namespace"}}).load(); err == nil {
		t.Error("want an error for an invalid namespace")
	}
}

// GATEWAY_NAME is the Gateway of MLflow and registries. MLFLOW_GATEWAY_NAME overrides it for MLflow.
func TestGatewayNameIsShared(t *testing.T) {
	for mlflow, want := range map[string]string{"": "gate", "  ": "gate", "other": "other"} {
		cfg := mustLoad(t, inputs{env: map[string]string{"GATEWAY_NAME": "gate", "MLFLOW_GATEWAY_NAME": mlflow}})
		if cfg.MLflow.GatewayName != want || cfg.ModelRegistry.Gateway.Name != "gate" {
			t.Errorf("MLFLOW_GATEWAY_NAME %q: got Gateways %q and %q", mlflow, cfg.MLflow.GatewayName, cfg.ModelRegistry.Gateway.Name)
		}
	}
}

// The domain of the Gateway keeps its scheme, because published URLs start with it.
func TestGatewayDomainWithScheme(t *testing.T) {
	for raw, want := range map[string]string{"https://gateway.example.org": "https://gateway.example.org", "gateway.example.org": "gateway.example.org"} {
		if got := mustLoad(t, inputs{env: map[string]string{"GATEWAY_DOMAIN": raw}}).ModelRegistry.Gateway.Domain; got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
	for _, raw := range []string{"https://", "ftp://a", "https://a/b", "a:443"} {
		if _, err := (inputs{env: map[string]string{"GATEWAY_DOMAIN": raw}}).load(); err == nil {
			t.Errorf("%q: want an error", raw)
		}
	}
}

// Exposure by a Gateway causes a warning unless its namespace and that of the HTTPRoutes are set.
func TestWarningWithoutGatewayNamespaces(t *testing.T) {
	for _, tc := range []struct {
		env      map[string]string
		warnings int
	}{
		{map[string]string{"EXPOSURE": "gateway"}, 1},
		{map[string]string{"EXPOSURE": "gateway", "GATEWAY_NAMESPACE": "gates"}, 1},
		{map[string]string{"EXPOSURE": "gateway", "GATEWAY_NAMESPACE": "gates", "HTTPROUTE_NAMESPACE": "apps"}, 0},
		{map[string]string{}, 0},
	} {
		warnings := mustLoad(t, inputs{env: tc.env}).Warnings
		if len(warnings) != tc.warnings || tc.warnings > 0 && !strings.Contains(warnings[0], "set GATEWAY_NAMESPACE") {
			t.Errorf("%v: unexpected warnings: %q", tc.env, warnings)
		}
	}
}

// Except on OpenShift, NamespacesUnset is true if a default namespace is used, because tenants may be able to create it.
func TestGatewayForPlatform(t *testing.T) {
	defaultGateway := RegistryGateway{Name: "g", Namespace: "openshift-ingress", RouteNamespace: "redhat-ods-applications"}
	unset := defaultGateway
	unset.NamespacesUnset = true
	for _, tc := range []struct {
		gateway   RegistryGateway
		openShift bool
		want      RegistryGateway
	}{
		{RegistryGateway{Name: "g"}, true, defaultGateway},
		{RegistryGateway{Name: "g"}, false, unset},
		{RegistryGateway{Name: "g", Namespace: "openshift-ingress"}, false, unset},
		{defaultGateway, false, defaultGateway},
		{RegistryGateway{Name: "g", Namespace: "gates", RouteNamespace: "apps"}, false, RegistryGateway{Name: "g", Namespace: "gates", RouteNamespace: "apps"}},
	} {
		if got := tc.gateway.ForPlatform(tc.openShift); got != tc.want {
			t.Errorf("%+v on OpenShift %t: got %+v, want %+v", tc.gateway, tc.openShift, got, tc.want)
		}
	}
}
