package mlflow_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"
	image     = "quay.io/example/mlflow:v3"
	external  = "https://gateway.apps.example.com"

	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
	// quiet is how long a spec checks that nothing is sent; the rest of the suite is covered by [framework.Env.ExpectAtRest].
	quiet = time.Second
	// calm is how long the manager must send nothing before a spec makes the next change.
	calm = time.Second
	// collectionTime is how long the garbage collector of Kubernetes may take before a spec deletes pods itself.
	collectionTime = 2 * time.Second
)

// All specs share one control plane with every optional API and one manager with exactly the shipped rights. MLflow is a singleton, so the
// specs are serial and delete all their objects.
var (
	env     *framework.Env
	account *operator.Installed
	manager *framework.Manager
)

func TestMLflow(t *testing.T) { framework.Run(t, "MLflow") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "mlflow", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme, mlflowconfigv1.AddToScheme), framework.WithOperator("config/default"))
	account = env.Installed
	// The namespace enforces the restricted level of Pod Security, so specs fail if one of our pods violates it.
	env.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}}})
	manager = env.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: account.ServiceAccount,
		Env:            []string{"MLFLOW_IMAGE=" + image, "MLFLOW_URL=" + external + "/"},
	})
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })
