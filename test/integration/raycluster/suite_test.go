package raycluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	waitTimeout = 90 * time.Second
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = time.Second
	// operatorNamespace is the namespace of the manager.
	operatorNamespace = "opendatahub"
)

// All specs share one OpenShift control plane and one manager with exactly the shipped permissions. Each spec has its own namespace.
// KubeRay does not run; the specs write its objects. Specs that change the settings of all clusters are serial.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestRayCluster(t *testing.T) { framework.Run(t, "RayCluster") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "raycluster", cluster.OpenShift, framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	env.DisableWebhooks(ctx)
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=raycluster", "--metrics-bind-address=127.0.0.1:0"},
	})
}, NodeTimeout(framework.StartTimeout))
