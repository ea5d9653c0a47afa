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
	// quiet is how long a spec checks that nothing is sent; the rest of the suite is covered by [framework.Env.ExpectIdle].
	quiet             = time.Second
	operatorNamespace = "opendatahub"
)

// Ray clusters without OpenShift, with the webhooks and exactly the shipped rights. KubeRay does not run. The specs change the settings of
// all clusters, and are serial.
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
