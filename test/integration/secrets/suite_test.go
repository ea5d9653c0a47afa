// Package secrets_test creates broken resources whose Secrets contain a marker, and searches for the marker in everything that is readable
// without access to Secrets.
package secrets_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	idlePeriod  = time.Second
)

var (
	env     *framework.Env
	manager *framework.Manager
)

func TestSecrets(t *testing.T) { framework.Run(t, "Secrets") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "secrets", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"),
		framework.WithTypes(mlflowv1.AddToScheme, aihubv1alpha1.AddToScheme, v1beta1.AddToScheme))
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort,
		Args:        []string{"--metrics-secure=false", "--zap-log-level=debug"},
		Env:         []string{"MLFLOW_IMAGE=testcluster.invalid/exit-3"},
	})
}, NodeTimeout(framework.StartTimeout))
