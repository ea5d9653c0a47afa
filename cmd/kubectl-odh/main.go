// Command kubectl-odh shows the resources of the operator, their problems and the objects that the operator would create, and collects data
// for support cases. As an executable of that name on the PATH it is the plugin `kubectl odh`.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/doctor"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/gather"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/status"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
)

// version of this program, set at link time with -ldflags "-X main.version=..."; the default is the version of the module.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates the program
	code := cli.Run(ctx, cli.NewOptions(programVersion()), os.Args[1:], commands())
	stop()
	os.Exit(code)
}

func commands() []cli.Command {
	return []cli.Command{
		status.Command, tree.Command, render.Command, doctor.Command, gather.Command,
	}
}

// programVersion returns the version set at link time, or else that of the module, or "dev".
func programVersion() string {
	module := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		module = info.Main.Version
	}
	return cmp.Or(version, module, "dev")
}
