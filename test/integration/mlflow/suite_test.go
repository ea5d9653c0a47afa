package mlflow_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace  = "opendatahub"
	image      = "quay.io/example/mlflow:v3"
	gatewayURL = "https://gateway.apps.example.com"

	specTimeout = 5 * time.Minute
	// idlePeriod is the time without requests after which the manager counts as idle, see also [framework.Env.ExpectIdle].
	idlePeriod = time.Second
	// garbageCollectionTimeout is the time after which a spec deletes ReplicaSets and pods that the garbage collector has not deleted.
	garbageCollectionTimeout = 2 * time.Second
)

// All specs share one control plane with every optional API and one manager with exactly the shipped permissions. MLflow is a singleton, so the
// specs are serial and delete all their objects.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestMLflow(t *testing.T) { framework.Run(t, "MLflow") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "mlflow", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme, mlflowconfigv1.AddToScheme), framework.WithOperator("config/default"))
	// The namespace enforces the restricted level of Pod Security, so specs fail if a managed pod violates it.
	env.SetLabel(ctx, framework.NamespaceNamed(namespace), "pod-security.kubernetes.io/enforce", "restricted")
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Env: []string{"MLFLOW_IMAGE=" + image, "MLFLOW_URL=" + gatewayURL + "/"},
	})
}, NodeTimeout(framework.StartTimeout))
