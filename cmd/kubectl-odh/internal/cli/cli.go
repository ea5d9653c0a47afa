// Package cli is what the sub-commands have in common: flags, the way to the cluster, output for people and for programs, and
// exit codes.
//
// Everything outside the program is in [Options], so that tests can replace it. A command is a [Command], made of cobra; it gathers a
// [View], which [Options.Show] prints, and ends with nil when all is well, [ErrWrong] when what it has shown is not, [ErrUnknown] when it
// could not read everything, and any other error when it was called wrongly or could not find out.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
)

// Requests are many, short and few at a time, so the client does not hold them back much; the API server has its own fairness.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// requestTimeout is how long one request may take unless a flag says otherwise.
const requestTimeout = "20s"

// Options are the flags that all sub-commands have, and what the program gets from outside.
type Options struct {
	genericiooptions.IOStreams
	// Config are the flags of kubectl that choose a cluster, and Print those of the output.
	Config *genericclioptions.ConfigFlags
	Print  *genericclioptions.PrintFlags
	// AllNamespaces looks at the whole cluster.
	AllNamespaces bool
	// ManagerNamespace is where the manager runs; empty to have it found.
	ManagerNamespace string
	// Version of the program.
	Version string

	Clock clock.PassiveClock
	// Lookup reads the environment.
	Lookup func(string) (string, bool)
	// Warnings gets those of the API server. By default they are dropped: who lists every kind meets deprecated ones.
	Warnings rest.WarningHandlerWithContext
	// Connect finds the cluster.
	Connect func() (*Cluster, error)
}

// NewOptions are those of the process that runs.
func NewOptions(version string) *Options {
	o := &Options{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Print:     genericclioptions.NewPrintFlags(""), Version: version,
		Clock: clock.RealClock{}, Lookup: os.LookupEnv, Warnings: rest.NoWarnings{},
	}
	o.Config = genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(requestsPerSecond).WithDiscoveryBurst(requestsAtOnce).
		WithWrapConfigFn(func(c *rest.Config) *rest.Config {
			c.UserAgent, c.QPS, c.Burst, c.WarningHandlerWithContext = "kubectl-odh/"+version, requestsPerSecond, requestsAtOnce, o.Warnings
			return c
		})
	*o.Config.Timeout = requestTimeout
	o.Print.NamePrintFlags = nil // what is printed is no object of the cluster
	o.Connect = o.connect
	return o
}

func (o *Options) addTo(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.Config.AddFlags(flags)
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Show all namespaces.")
	flags.StringVar(&o.ManagerNamespace, "manager-namespace", "", "Namespace of the manager. By default its Deployment is found by name.")
}

// AddOutput gives a command the flag -o.
func (o *Options) AddOutput(c *cobra.Command) {
	o.Print.AddFlags(c)
	formats := cobra.FixedCompletions(o.Print.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp)
	_ = c.RegisterFlagCompletionFunc("output", formats) // fails for unknown flags only
}

// Namespace that a flag names, empty for none.
func (o *Options) Namespace() string { return *o.Config.Namespace }

func (o *Options) check(*cobra.Command, []string) error {
	if o.AllNamespaces && o.Namespace() != "" {
		return fmt.Errorf("-n %s and -A contradict each other; leave one out", o.Namespace())
	}
	if *o.Print.OutputFormat != "" {
		_, err := o.Print.ToPrinter()
		return err
	}
	return nil
}

// Cluster is the way to a cluster.
type Cluster struct {
	// Namespace is the one given by flag, else that of the context.
	Namespace string
	Discovery discovery.DiscoveryInterface
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	// Pods serves logs, however long one takes.
	Pods corev1client.PodsGetter
}

// Read connects to the cluster, and returns a reader of what it serves. An error means that nothing was learnt.
func (o *Options) Read(ctx context.Context) (*Cluster, fetch.Reader, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, fetch.Reader{}, err
	}
	set, err := fetch.Discover(ctx, cluster.Discovery)
	return cluster, fetch.Reader{Objects: cluster.Dynamic, Metadata: cluster.Metadata, Set: set, ContextNamespace: cluster.Namespace, Gaps: &fetch.Gaps{}}, err
}

// nowhere is the server that kubectl asks when no kubeconfig names one.
const defaultServer = "http://localhost:8080"

// connect finds a cluster as kubectl does. Nothing is sent.
func (o *Options) connect() (*Cluster, error) {
	config, err := o.Config.ToRESTConfig()
	if err == nil && config.Host == defaultServer && *o.Config.APIServer == "" {
		err = clientcmd.ErrEmptyConfig
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w; set KUBECONFIG, or use --kubeconfig or --context", err)
	}
	cluster := &Cluster{}
	endless := rest.CopyConfig(config)
	endless.Timeout = 0
	var failed [5]error
	cluster.Namespace, _, failed[0] = o.Config.ToRawKubeConfigLoader().Namespace()
	cluster.Discovery, failed[1] = discovery.NewDiscoveryClientForConfig(config)
	cluster.Dynamic, failed[2] = dynamic.NewForConfig(config)
	cluster.Metadata, failed[3] = metadata.NewForConfig(config)
	cluster.Pods, failed[4] = corev1client.NewForConfig(endless)
	if err := cmp.Or(failed[:]...); err != nil {
		return nil, fmt.Errorf("building the clients: %w", err)
	}
	return cluster, nil
}

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

// Judgement is the end of a command that has found something wrong, or could not read everything.
func ResultError(wrong, incomplete bool) error {
	switch {
	case wrong:
		return ErrWrong
	case incomplete:
		return ErrUnknown
	}
	return nil
}

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
	for _, command := range commands {
		root.AddCommand(command(o))
	}
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, ErrWrong) && err != ErrUnknown { //nolint:errorlint // one that wraps it has more to say
		fmt.Fprintf(o.ErrOut, "kubectl-odh: %s\n", explain(err))
	}
	switch {
	case err == nil:
		return ExitHealthy
	case errors.Is(err, ErrWrong):
		return ExitWrong
	case errors.Is(err, ErrUnknown), apierrors.IsForbidden(err):
		return ExitUnknown
	}
	return ExitFailed
}

// explain is an error in words for its user, with what to do about it where the API server does not answer.
func explain(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if apierrors.IsUnauthorized(err) {
		return "the API server does not know who you are: log in again, or choose another user with --context (" + text + ")"
	}
	if _, is := errors.AsType[*url.Error](err); is {
		return "the API server does not answer: " + text + "; is it the right one? --context and --kubeconfig choose another"
	}
	return text
}
