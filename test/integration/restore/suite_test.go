// Package restore_test backs up all objects that the operator created, deletes them, and restores them like Velero.
package restore_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/everykind"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 10 * time.Minute
	patience     = 2 * time.Minute
	// quiet is how long a manager at rest has sent nothing.
	quiet = 4 * time.Second
)

// One control plane, and one manager with all components and exactly the shipped rights.
var (
	world   *everykind.World
	manager *framework.Manager
)

func TestRestore(t *testing.T) { framework.Run(t, "Restore") }

var _ = BeforeSuite(func(ctx SpecContext) {
	world = everykind.Start(ctx, "restore", "config/default")
	manager = world.StartManager(ctx, world.Options(world.Installed))
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })

// everything creates the missing resources, and waits until all are ready and the manager is at rest.
func everything(ctx context.Context) []*unstructured.Unstructured {
	GinkgoHelper()
	world.Namespace(ctx)
	resources := world.Resources()
	world.Create(ctx, resources...)
	world.AwaitReady(ctx, resources)
	world.Settle(manager.User, quiet, patience)
	return resources
}
