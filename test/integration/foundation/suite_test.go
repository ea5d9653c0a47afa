// Package foundation tests the shared packages of all components against a real API server.
package foundation

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// suiteExpiry bounds the start of the control plane, whose programs the first run builds.
const suiteExpiry = 20 * time.Minute

func TestFoundation(t *testing.T) { framework.Run(t, "Foundation") }

var env *framework.Env

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "foundation", cluster.Plain)
	installWidgets(ctx)
}, NodeTimeout(suiteExpiry))
