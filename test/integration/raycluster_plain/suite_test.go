package raycluster_plain_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	waitTimeout = 90 * time.Second
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod        = time.Second
	operatorNamespace = "opendatahub"
)

// All specs share one control plane without OpenShift, and one manager with exactly the shipped permissions. KubeRay does not run. The specs
// are serial, because they change the settings of all clusters.
var (
	env     *framework.Env
	options framework.ManagerOptions
	manager *framework.Manager
)

func TestRayClusterPlain(t *testing.T) { framework.Run(t, "RayCluster on plain Kubernetes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "rayplain", cluster.Plain, framework.WithOperator("config/default"))
	options = framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort,
		Args:        []string{"--components=raycluster", "--metrics-bind-address=127.0.0.1:0"},
	}
	manager = env.StartManager(ctx, options)
	Expect(manager.Process.Running()).To(BeTrue())
}, NodeTimeout(framework.StartTimeout))
