// Package olm_test holds what the manager creates because an OLM bundle cannot contain it, on a real control plane. That OLM itself installs
// the bundle shows package e2e.
package olm_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace    = "opendatahub"
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
	// quiet is how long a spec watches that nothing is sent.
	quiet = 4 * time.Second
	// allExamples is the number of examples for the console.
	allExamples = 22
)

// One control plane that serves neither the kinds of monitoring nor those of the console of OpenShift at first.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestOLM(t *testing.T) { framework.Run(t, "What a bundle cannot contain") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "olm", cluster.Bare, framework.WithSets(cluster.GatewayAPI, cluster.KubeRay),
		framework.WithOperator("test/integration/olm/testdata/operator"))
	// It owns the monitors. No pod of it runs: the manager is a process.
	deployment := env.Installed.Deployment.DeepCopy()
	deployment.Spec.Replicas = new(int32(0))
	if err := env.Admin.Create(ctx, deployment); err != nil {
		Fail(err.Error())
	}
	manager = start(ctx, "manager")
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })

// start runs the manager with variables, such as those of a Subscription.
func start(ctx SpecContext, name string, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: name, ServiceAccount: env.Installed.ServiceAccount, WebhookPort: env.Installed.WebhookPort, Env: append([]string{"ENABLE_OLM=true", "MLFLOW_IMAGE=quay.io/example/mlflow:v3"}, variables...),
	})
}
