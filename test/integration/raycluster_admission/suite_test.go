package raycluster_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 5 * time.Minute

	operatorNamespace = "opendatahub"
)

// All specs share one control plane with the CRDs of KubeRay and OpenShift, and a manager with the shipped permissions, whose webhooks the API
// server calls. KubeRay does not run.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestRayClusterAdmission(t *testing.T) { framework.Run(t, "RayCluster admission") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "raycluster-admission", cluster.OpenShift, framework.WithOperator("config/default"))
	manager = env.StartManager(ctx, managerOptions("manager"))
	waitForWebhooks(ctx)
	excludeBypassed(ctx)
}, NodeTimeout(framework.StartTimeout))
