// Package olm_test checks the objects that the manager creates because an OLM bundle cannot contain them. Package e2e tests the installation of
// the bundle by OLM.
package olm_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace   = "opendatahub"
	specTimeout = 5 * time.Minute
	// idlePeriod is how long an idle manager must send no request.
	idlePeriod = 4 * time.Second
	// sampleCount is the number of examples that the manager creates if all their components are enabled.
	sampleCount = 22
)

// The control plane serves neither the APIs of monitoring nor that of the OpenShift console at first.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestOLM(t *testing.T) { framework.Run(t, "Objects that a bundle cannot contain") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "olm", cluster.Bare, framework.WithSets(cluster.GatewayAPI, cluster.KubeRay),
		framework.WithOperator("test/integration/olm/testdata/operator"))
	// The Deployment owns the monitors. It has no pod, because the manager is a process.
	deployment := env.Installed.Deployment.DeepCopy()
	deployment.Spec.Replicas = new(int32(0))
	if err := env.Admin.Create(ctx, deployment); err != nil {
		Fail(err.Error())
	}
	manager = startManager(ctx, "manager")
}, NodeTimeout(framework.StartTimeout))

// startManager starts the manager with environment variables, as a Subscription would.
func startManager(ctx SpecContext, name string, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: name, WebhookPort: env.Installed.WebhookPort, Env: append([]string{"ENABLE_OLM=true", "MLFLOW_IMAGE=quay.io/example/mlflow:v3"}, variables...),
	})
}
