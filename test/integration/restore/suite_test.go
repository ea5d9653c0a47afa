// Package restore_test takes a backup of everything that the operator made, loses it, and brings it back as Velero does.
package restore_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/everykind"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 10 * time.Minute
	patience     = 2 * time.Minute
	// quiet is how long the manager must have sent nothing to count as at rest.
	quiet = 4 * time.Second
)

// One control plane, and one manager with every component on and exactly the shipped rights.
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
