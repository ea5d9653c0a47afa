// Command kubectl-odh shows what the operator runs in a cluster, what it would make, and what is wrong with it. As a file of
// that name on the PATH it is the plugin `kubectl odh`.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// version of this program, set at link time with -ldflags "-X main.version=..."; without it the version of the module is taken.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.FromSystem(programVersion()), commands())
	stop()
	os.Exit(code)
}

// programVersion never returns an empty string.
func programVersion() string {
	module := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		module = info.Main.Version
	}
	return cmp.Or(version, module, "dev")
}
