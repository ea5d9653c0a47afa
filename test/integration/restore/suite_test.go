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
	specTimeout = 10 * time.Minute
	patience    = 2 * time.Minute
	// quiet is how long a manager at rest has sent nothing.
	quiet = 4 * time.Second
)

// One control plane, and one manager with all components and exactly the shipped rights.
var (
	world   *everykind.Cluster
	manager *framework.Manager
)

func TestRestore(t *testing.T) { framework.Run(t, "Restore") }

var _ = BeforeSuite(func(ctx SpecContext) {
	world = everykind.Start(ctx, "restore", "config/default")
	manager = world.StartManager(ctx, world.Options(world.Installed))
}, NodeTimeout(framework.StartTimeout))

// everything creates the missing resources, and waits until all are ready and the manager is at rest.
func everything(ctx context.Context) []*unstructured.Unstructured {
	GinkgoHelper()
	world.Namespace(ctx)
	resources := world.Resources()
	world.Create(ctx, resources...)
	world.WaitReady(ctx, resources)
	world.WaitIdle(manager.User, quiet, patience)
	return resources
}
