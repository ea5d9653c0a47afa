// Package cli is shared by the sub-commands: flags, clients, text and structured output, and exit codes.
//
// All external dependencies are in [Options], so that tests can replace them. Sub-commands print a [View] with [Options.Show]; gather
// writes an archive instead. They return [ErrWrong] if something shown is unhealthy, [ErrUnknown] if not everything could be read, and any
// other error for wrong usage or a cluster that does not respond.
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

// Client-side rate limits. They are high, because the API server has priority and fairness.
const (
	requestsPerSecond = 100
	requestBurst      = 200
)

// requestTimeout is the default timeout of one request.
const requestTimeout = "20s"

// Options are the flags of all sub-commands and the external dependencies.
type Options struct {
	genericiooptions.IOStreams
	// Config are the flags of kubectl that select a cluster, Print are the flags of the output.
	Config *genericclioptions.ConfigFlags
	Print  *genericclioptions.PrintFlags
	// AllNamespaces selects all namespaces.
	AllNamespaces bool
	// ManagerNamespace is the namespace of the manager; "" to search all namespaces.
	ManagerNamespace string
	Version          string

	Clock clock.PassiveClock
	// Lookup returns an environment variable.
	Lookup func(string) (string, bool)
	// Warnings handles warnings of the API server. By default they are dropped, because the commands list deprecated kinds too.
	Warnings rest.WarningHandlerWithContext
	// Connect returns the clients.
	Connect func() (*Cluster, error)
}

// NewOptions returns the options of this process.
func NewOptions(version string) *Options {
	o := &Options{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Print:     genericclioptions.NewPrintFlags(""), Version: version,
		Clock: clock.RealClock{}, Lookup: os.LookupEnv, Warnings: rest.NoWarnings{},
	}
	o.Config = genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(requestsPerSecond).WithDiscoveryBurst(requestBurst).
		WithWrapConfigFn(func(c *rest.Config) *rest.Config {
			c.UserAgent, c.QPS, c.Burst, c.WarningHandlerWithContext = "kubectl-odh/"+version, requestsPerSecond, requestBurst, o.Warnings
			return c
		})
	*o.Config.Timeout = requestTimeout
	o.Print.NamePrintFlags = nil // the output is not an object of the cluster
	o.Connect = o.connect
	return o
}

// AddOutput adds the flag -o to a command.
func (o *Options) AddOutput(c *cobra.Command) {
	o.Print.AddFlags(c)
	formats := cobra.FixedCompletions(o.Print.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp)
	_ = c.RegisterFlagCompletionFunc("output", formats) // fails for unknown flags only
}

// Namespace returns the value of the flag -n, or "".
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

// Cluster holds the clients of a cluster.
type Cluster struct {
	// Namespace is the value of the flag -n, or else the namespace of the context.
	Namespace string
	Discovery discovery.DiscoveryInterface
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	// Pods reads logs, without a timeout.
	Pods corev1client.PodsGetter
}

// Read connects to the cluster and returns a reader. It fails if discovery returns nothing.
func (o *Options) Read(ctx context.Context) (*Cluster, fetch.Reader, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, fetch.Reader{}, err
	}
	set, err := fetch.Discover(ctx, cluster.Discovery)
	return cluster, fetch.Reader{Objects: cluster.Dynamic, Metadata: cluster.Metadata, Set: set, ContextNamespace: cluster.Namespace, Gaps: &fetch.Gaps{}}, err
}

// defaultServer is the default of client-go without a kubeconfig.
const defaultServer = "http://localhost:8080"

// connect creates the clients as kubectl does, without sending a request.
func (o *Options) connect() (*Cluster, error) {
	config, err := o.Config.ToRESTConfig()
	if err == nil && config.Host == defaultServer && *o.Config.APIServer == "" {
		err = clientcmd.ErrEmptyConfig
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w; set KUBECONFIG, or use --kubeconfig or --context", err)
	}
	cluster := &Cluster{}
	logConfig := rest.CopyConfig(config)
	logConfig.Timeout = 0
	var errs [5]error
	cluster.Namespace, _, errs[0] = o.Config.ToRawKubeConfigLoader().Namespace()
	cluster.Discovery, errs[1] = discovery.NewDiscoveryClientForConfig(config)
	cluster.Dynamic, errs[2] = dynamic.NewForConfig(config)
	cluster.Metadata, errs[3] = metadata.NewForConfig(config)
	cluster.Pods, errs[4] = corev1client.NewForConfig(logConfig)
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, fmt.Errorf("building the clients: %w", err)
	}
	return cluster, nil
}

// Exit codes.
const (
	// ExitHealthy: no problem.
	ExitHealthy = 0
	// ExitWrong: something shown has a problem.
	ExitWrong = 1
	// ExitFailed: another error, such as wrong usage or no answer from the cluster.
	ExitFailed = 2
	// ExitUnknown: nothing shown has a problem, but not everything could be read, or a permission is missing.
	ExitUnknown = 3
)

// ErrWrong is returned after a problem was shown; nothing more is printed, and the exit code is ExitWrong.
var ErrWrong = errors.New("something is wrong")

// ErrUnknown is returned if no problem was shown but not everything could be read. Nothing more is printed unless an error wraps it, and the
// exit code is ExitUnknown.
var ErrUnknown = errors.New("not everything could be read")

// ResultError returns ErrWrong, ErrUnknown or nil.
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

// Command builds a sub-command.
type Command func(*Options) *cobra.Command

// Run executes a command line and returns the exit code.
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
	flags := root.PersistentFlags()
	o.Config.AddFlags(flags)
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "Show all namespaces.")
	flags.StringVar(&o.ManagerNamespace, "manager-namespace", o.ManagerNamespace, "Namespace of the manager. By default its Deployment is found by name.")
	for _, command := range commands {
		root.AddCommand(command(o))
	}
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, ErrWrong) && err != ErrUnknown { //nolint:errorlint // an error that wraps it is printed
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

// explain returns an error as text, with advice if the API server does not respond or rejects the credentials.
func explain(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if apierrors.IsUnauthorized(err) {
		return "the API server does not accept your credentials: log in again, or choose another user with --context (" + text + ")"
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return "the API server does not answer: " + text + "; check the address, or choose another cluster with --context or --kubeconfig"
	}
	return text
}
