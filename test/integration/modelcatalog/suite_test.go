// Package modelcatalog_test tests the model catalog on real control planes with the shipped permissions: on OpenShift, with a namespace for
// registries and a gateway, and on plain Kubernetes.
package modelcatalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	// idlePeriod is the time for which a spec expects no request; see [framework.Env.ExpectIdle] for the check of the whole suite.
	idlePeriod = 4 * time.Second
	// registries and routes are the namespaces of Catalogs and of HTTPRoutes in the settings of the manager on OpenShift.
	registries = "odh-model-registries"
	routes     = "redhat-ods-applications"
	domain     = "apps.example.com"
)

// All specs share onOpenShift and onKubernetes. They run one at a time, because only one Catalog of a cluster is active.
var onOpenShift, onKubernetes *controlPlane

func TestModelCatalog(t *testing.T) { framework.Run(t, "Model catalog") }

var _ = BeforeSuite(func(ctx SpecContext) {
	onKubernetes = startControlPlane(ctx, "catalog-plain", cluster.Bare, "ENABLE_WEBHOOKS=false")
	onOpenShift = startControlPlane(ctx, "catalog-ocp", cluster.OpenShift, "ENABLE_WEBHOOKS=false", "REGISTRIES_NAMESPACE="+registries,
		"DEFAULT_DOMAIN="+domain, "GATEWAY_DOMAIN=gateway.example.com", "HTTPROUTE_NAMESPACE="+routes)
}, NodeTimeout(framework.StartTimeout))

// startControlPlane starts a control plane with a manager that runs only the catalog.
func startControlPlane(ctx SpecContext, name string, platform cluster.Platform, settings ...string) *controlPlane {
	env := framework.Start(ctx, name, platform, framework.WithTypes(aihubv1alpha1.AddToScheme), framework.WithSets(cluster.PlatformServices), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	plane := &controlPlane{Env: env}
	for _, namespace := range []string{registries, routes} {
		plane.ensureNamespace(ctx, namespace)
	}
	images := []string{
		"REST_IMAGE=quay.io/example/model-registry:v1", "KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1",
		"POSTGRES_IMAGE=quay.io/example/postgresql:16", "CATALOG_DATA_IMAGE=quay.io/example/catalog-data:v1",
		"BENCHMARK_DATA_IMAGE=quay.io/example/benchmark-data:v1",
	}
	plane.manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: plane.Installed.WebhookPort, Args: []string{"--components=modelcatalog", "--metrics-secure=false"},
		Env: append(images, settings...),
	})
	plane.waitForWebhook(ctx)
	return plane
}
