// Package access_test covers namespace RBAC of MLflow on a real control plane whose only optional API is Auth of the platform.
package access_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 5 * time.Minute
	// idlePeriod is the time for which a spec expects no request. It exceeds the requeue interval of a reconcile that waits for Auth.
	idlePeriod = 6 * time.Second
)

// All specs share one control plane and one manager with the shipped permissions. Each spec creates the only MLflow.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestAccess(t *testing.T) { framework.Run(t, "Namespace RBAC") }

var options = framework.ManagerOptions{
	Args: []string{"--metrics-secure=false", "--components=mlflow"}, // other components read RoleBindings too
	Env:  []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3", "ENABLE_NAMESPACE_RBAC=true"},
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "access", cluster.Bare, framework.WithTypes(mlflowv1.AddToScheme), framework.WithSets(cluster.PlatformServices), framework.WithOperator("config/default"))
	options.ServiceAccount = env.Installed.ServiceAccount
	manager = env.StartManager(ctx, options)
}, NodeTimeout(framework.StartTimeout))
