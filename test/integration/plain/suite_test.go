package plain_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"

	specTimeout = 5 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 4 * time.Second
)

// All specs share one control plane without the APIs of OpenShift, and one manager with exactly the shipped permissions, which issues the
// certificates.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestPlain(t *testing.T) { framework.Run(t, "MLflow on plain Kubernetes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "plain", cluster.Plain, framework.WithTypes(mlflowv1.AddToScheme), framework.WithOperator("config/default"))
	manager = env.StartManager(ctx, managerOptions())
}, NodeTimeout(framework.StartTimeout))

func managerOptions() framework.ManagerOptions {
	return framework.ManagerOptions{
		Env: []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3", "MLFLOW_URL=https://gateway.example.com"},
	}
}
