package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
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
It changes nothing in the cluster.

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

// explain is an error in words for its user. What API server and network say is completed by what to do about it.
func explain(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if apierrors.IsUnauthorized(err) {
		return "the API server does not know who you are: log in again, or choose another user with --context (" + text + ")"
	}
	failed, is := errors.AsType[*url.Error](err)
	if !is {
		return text
	}
	server := "the API server"
	if address, err := url.Parse(failed.URL); err == nil && address.Host != "" {
		server += " at " + address.Scheme + "://" + address.Host
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return fmt.Sprintf("%s has a certificate that is not trusted: %v; the kubeconfig names whom to trust, in certificate-authority of its cluster", server, failed.Err)
	}
	if failed.Timeout() {
		return fmt.Sprintf("%s does not answer in time: %v; --request-timeout gives it more", server, failed.Err)
	}
	return fmt.Sprintf("%s cannot be reached: %v; is the cluster up, and is it the right one? --context and --kubeconfig choose another", server, failed.Err)
}

// notFound says why the flags lead to no cluster, and what to do.
func (o *Options) notFound(err error) error {
	loader, chosen := o.Config.ToRawKubeConfigLoader(), *o.Config.Context
	config, _ := loader.RawConfig() // empty where it cannot be read, and then err says why
	known := slices.Sorted(maps.Keys(config.Contexts))
	choose := "choose one of " + strings.Join(known, ", ") + " with --context"
	_, exists := config.Contexts[chosen]
	switch {
	case len(known) == 0 && clientcmd.IsEmptyConfig(err):
		files := strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), " or ")
		return fmt.Errorf("finding the cluster: there is no kubeconfig in %s; set KUBECONFIG to the path of one, or use --kubeconfig", files)
	case len(known) > 0 && chosen == "" && config.CurrentContext == "":
		return fmt.Errorf("finding the cluster: the kubeconfig has no current context; %s", choose)
	case len(known) > 0 && chosen != "" && !exists:
		return fmt.Errorf("finding the cluster: context %q does not exist; %s", chosen, choose)
	}
	return fmt.Errorf("finding the cluster: %w; set KUBECONFIG, or use --kubeconfig or --context", err)
}
