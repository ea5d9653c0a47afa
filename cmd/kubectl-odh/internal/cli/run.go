package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes.
const (
	// ExitHealthy says that all is well.
	ExitHealthy = 0
	// ExitWrong says that something shown is not well.
	ExitWrong = 1
	// ExitFailed says that the command was called wrongly, or could not find out.
	ExitFailed = 2
	// ExitUnknown says that nothing shown is wrong, and that not everything could be read, or that a permission is missing.
	ExitUnknown = 3
)

// ErrWrong ends a command that has shown what is wrong; nothing more is printed, and the exit code is ExitWrong.
var ErrWrong = errors.New("something is wrong")

// ErrUnknown ends a command that has shown nothing wrong and could not read everything; nothing more is printed unless an error wraps it,
// and the exit code is ExitUnknown.
var ErrUnknown = errors.New("not everything could be read")

const long = `Shows the resources that the Open Data Hub platform operator reconciles, and what is wrong with them.
Only pause and resume change something in the cluster: one annotation.

Exit codes: 0 no problem, 1 a problem, 2 a wrong command line or no answer from the cluster,
3 no problem in what could be read, but something could not be read, or you lack a permission.`

// Command makes a sub-command.
type Command func(*Options) *cobra.Command

// Run picks a command, runs it and returns the exit code.
func Run(ctx context.Context, o *Options, args []string, commands []Command) int {
	root := &cobra.Command{
		Use: "kubectl-odh", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl odh"},
		Short: "Inspect the Open Data Hub platform operator and its resources", Long: long, Example: "  kubectl odh status",
		Version: o.Version, SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: o.check,
	}
	root.SetArgs(args)
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.ErrOut)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%s: %w; see %s --help", c.Name(), err, c.CommandPath())
	})
	o.addTo(root)
	for _, command := range append(commands, version) {
		root.AddCommand(command(o))
	}
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return ExitHealthy
	case errors.Is(err, ErrWrong):
		return ExitWrong
	case errors.Is(err, ErrUnknown), apierrors.IsForbidden(err):
		if err != ErrUnknown { //nolint:errorlint // one that wraps it has more to say
			fmt.Fprintf(o.ErrOut, "kubectl-odh: %s\n", explain(err))
		}
		return ExitUnknown
	default:
		fmt.Fprintf(o.ErrOut, "kubectl-odh: %s\n", explain(err))
		return ExitFailed
	}
}
