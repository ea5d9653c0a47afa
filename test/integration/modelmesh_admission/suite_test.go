package modelmesh_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
)

// All specs share one control plane with the CRDs of KServe, and a manager with the shipped permissions, whose webhook the API server calls. The
// manager is never elected, so only admission runs.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestModelMeshAdmission(t *testing.T) { framework.Run(t, "ModelMesh admission") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-admission", cluster.Bare, framework.WithSets(cluster.KServe), framework.WithTypes(v1alpha1.AddToScheme), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	env.HoldLease(ctx)
	manager = env.StartManager(ctx, managerOptions("manager", "modelmesh"))
	waitForWebhooks(ctx)
}, NodeTimeout(framework.StartTimeout))
