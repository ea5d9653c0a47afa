package status

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const long = `The manager is found by the name of its Deployment, and which components are on
is read from its arguments, variables and ConfigMaps. Without a Deployment, as
when the manager runs as a process, that is not known.

Resources of all namespaces are shown unless -n names one, those that need
attention first. A resource is paused while its annotation
platform.opendatahub.io/paused is "true".

The exit code is 1 when the manager or a resource needs attention, also while it
is starting, and 3 when none does and something could not be read.`

// Command shows how everything is.
func Command() cli.Command {
	return cli.Command{
		Name: "status", Short: "show the manager, its components and every resource that they look after", Long: long,
		Examples: []string{"status", "status -n team --all", "status -o json | jq '.resources[] | select(.state == \"Failed\")'"},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			all := flags.Bool("all", false, "show every resource, however many there are")
			return func(ctx context.Context, call *cli.Call, args []string) error { return run(ctx, call, args, *all) }
		},
	}
}

func run(ctx context.Context, call *cli.Call, args []string, all bool) error {
	if len(args) > 0 {
		return cli.Usage("status takes no arguments, got %q; kubectl odh tree shows a single resource", args[0])
	}
	cluster, err := call.Cluster()
	if err != nil {
		return err
	}
	found, err := gather(ctx, call, cluster)
	if err != nil {
		return err
	}
	now := call.Clock.Now()
	report := newReport(found, now)
	if call.Output != cli.Text {
		err = call.Encode(report)
	} else {
		_, err = io.WriteString(call.Stdout, text{style: call.Style, now: now, all: all}.render(report))
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	switch {
	case !report.OK:
		return cli.ErrWrong
	case len(report.Notes) > 0:
		return cli.ErrUnknown
	}
	return nil
}
