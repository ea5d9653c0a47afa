// Package foundation tests the shared packages of all components against a real API server.
package foundation

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func TestFoundation(t *testing.T) { framework.Run(t, "Foundation") }

var env *framework.Env

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "foundation", cluster.Plain)
	installWidgets(ctx)
}, NodeTimeout(framework.StartTimeout))
