package raycluster_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 3 * time.Minute
	// waitTimeout is how long the manager may take to publish its CA, to take over settings, or to act.
	waitTimeout = time.Minute
	poll        = 100 * time.Millisecond

	operatorNamespace = "opendatahub"
)

// All specs share one control plane with the CRDs of KubeRay and of OpenShift, and a manager with the shipped rights, whose
// webhooks the API server calls as it would in a cluster. KubeRay itself is not there.
var (
	env     *framework.Env
	account *operator.Installed
	manager *framework.Manager
)

func TestRayClusterAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.RandomizeAllSpecs = true
	RunSpecs(t, "RayCluster admission", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "raycluster-admission", cluster.OpenShift)
	account = env.InstallOperator(ctx, "config/default")
	manager = env.StartManager(ctx, options("manager"))
	waitForWebhooks(ctx)
	bypassable(ctx)
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })
