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
	// quiet is how long a spec checks that nothing is sent; the rest of the suite is covered by [framework.Env.ExpectIdle].
	quiet = 4 * time.Second
)

// All specs share one control plane. Each creates the objects of a replaced operator, and starts its own manager.
var (
	env *framework.Env
)

func TestTakeover(t *testing.T) { framework.Run(t, "Take-over") }

func managerOptions(variables ...string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Env:  append([]string{"MLFLOW_IMAGE=" + image}, variables...),
		Args: []string{"--components=mlflow"}, // first writes of other components are not counted
	}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "takeover", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme), framework.WithOperator("config/default"))
	Eventually(func() error { return env.Admin.List(ctx, &mlflowv1.MLflowList{}) }).WithContext(ctx).WithTimeout(time.Minute).
		Should(Succeed(), "discovery follows a moment after the definition")
	// The first manager of a cluster also writes the certificate of the webhooks, which specs must not count.
	manager := env.StartManager(ctx, managerOptions())
	env.WaitIdle(manager.User, quiet, specTimeout)
	manager.Stop(ctx)
}, NodeTimeout(framework.StartTimeout))
