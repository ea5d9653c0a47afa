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
	// quiet is how long a spec checks that nothing is sent; the rest of the suite is covered by [framework.Env.ExpectIdle].
	quiet = 4 * time.Second
)

// One control plane without the APIs of OpenShift, where MLflow issues its own certificate and a gateway may accept its HTTPRoute. The
// manager has exactly the shipped rights.
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
