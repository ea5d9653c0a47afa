// Package platform_test tests the custom resources of the platform operator, MLflowOperator and AIHub, on a real control plane.
package platform_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"

	specTimeout = 5 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 4 * time.Second
)

// All specs share one control plane with the APIs of OpenShift, and one manager with the shipped permissions. A variable of the legacy
// operator enables the component platform. A spec with other options stops this manager and restarts it.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestPlatform(t *testing.T) { framework.Run(t, "Platform") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "platform", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme, platformv1alpha1.AddToScheme, aihubv1alpha1.AddToScheme, v1beta1.AddToScheme), framework.WithOperator("config/default"))
	env.ClearNamespaces = true
	env.DisableMLflowWebhook(ctx)
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort, Args: []string{"--metrics-secure=false"},
		Env: []string{
			"MLFLOW_IMAGE=quay.io/example/mlflow:v3", "MLFLOW_URL=https://env.example.com",
			"ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER=true", "APPLICATIONS_NAMESPACE=" + namespace,
		},
	})
}, NodeTimeout(framework.StartTimeout))
