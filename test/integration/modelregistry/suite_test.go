package modelregistry_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 3 * time.Second
	// routeNamespace is the namespace of the HTTPRoutes.
	routeNamespace = "opendatahub"
)

// All specs share one control plane with every optional API and one manager with exactly the shipped permissions. Each has its own
// namespaces.
var (
	env     *framework.Env
	manager *framework.Manager
	// domain is the domain of the cluster, which is immutable once set.
	domain string
)

func TestModelRegistry(t *testing.T) { framework.Run(t, "Model registries on OpenShift") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelregistry", cluster.OpenShift, framework.WithTypes(v1beta1.AddToScheme, v1alpha1.AddToScheme), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	config := clusterIngress()
	env.Get(ctx, config)
	var err error
	domain, _, err = unstructured.NestedString(config.Object, "spec", "domain")
	Expect(err).NotTo(HaveOccurred())
	Expect(domain).NotTo(BeEmpty())
	manager = env.StartManager(ctx, managerOptions())
	waitForWebhooks(ctx)
}, NodeTimeout(framework.StartTimeout))

// managerOptions returns the options of the shared manager, for specs that change some of them.
func managerOptions() framework.ManagerOptions {
	return framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort, Args: []string{"--components=modelregistry"},
		Env: []string{
			"REST_IMAGE=quay.io/example/model-registry:v1", "KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1",
			"POSTGRES_IMAGE=quay.io/example/postgresql:16", "HTTPROUTE_NAMESPACE=" + routeNamespace,
		},
	}
}
