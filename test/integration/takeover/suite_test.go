package takeover_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"
	image     = "quay.io/example/mlflow:v3"

	specTimeout = 5 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 4 * time.Second
)

// All specs share one control plane. Each spec creates the objects of a legacy operator, and starts its own manager.
var (
	env *framework.Env
)

func TestTakeover(t *testing.T) { framework.Run(t, "Take-over") }

func managerOptions(variables ...string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Env:  append([]string{"MLFLOW_IMAGE=" + image}, variables...),
		Args: []string{"--components=mlflow"}, // other components would add writes
	}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "takeover", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme), framework.WithOperator("config/default"))
	Eventually(func() error { return env.Admin.List(ctx, &mlflowv1.MLflowList{}) }).WithContext(ctx).WithTimeout(time.Minute).
		Should(Succeed(), "the API is served shortly after its CRD is created")
	// The first manager of a cluster also writes the certificate of the webhooks, which specs must not count.
	manager := env.StartManager(ctx, managerOptions())
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
	manager.Stop(ctx)
}, NodeTimeout(framework.StartTimeout))
