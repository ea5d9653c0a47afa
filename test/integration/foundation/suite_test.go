// Package foundation proves the packages that every component stands on against a real API server.
package foundation

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// suiteExpiry bounds the start of the control plane: the first run builds its programs.
const suiteExpiry = 20 * time.Minute

func TestFoundation(t *testing.T) { framework.Run(t, "Foundation") }

var env *framework.Env

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "foundation", cluster.Plain)
	installWidgets(ctx)
}, NodeTimeout(suiteExpiry))
