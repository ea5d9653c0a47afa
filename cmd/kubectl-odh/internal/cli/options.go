package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
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
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// Requests are many, short and few at a time, so the client does not hold them back much; the API server has its own fairness.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// requestTimeout is how long one request may take unless a flag says otherwise. Each command sends several at once.
const requestTimeout = "20s"

// Options are the flags that all sub-commands have, and what the program gets from outside.
type Options struct {
	genericiooptions.IOStreams
	// Config are the flags of kubectl that choose a cluster, and Print those of the output.
	Config *genericclioptions.ConfigFlags
	Print  *genericclioptions.PrintFlags
	// AllNamespaces looks at the whole cluster.
	AllNamespaces bool
	// NoColor and ASCII make the text plain.
	NoColor, ASCII bool
	// ManagerNamespace is where the manager runs; empty to have it found.
	ManagerNamespace string
	// Version of the program.
	Version string

	Clock clock.PassiveClock
	// Lookup reads the environment.
	Lookup func(string) (string, bool)
	// Terminal tells whether Out is a terminal, and how many columns it has; 0 when that is not known.
	Terminal func() (columns int, is bool)
	// Interval is how long -w waits before it looks again.
	Interval time.Duration
	// Warnings gets those of the API server. By default they are dropped: who lists every kind meets deprecated ones.
	Warnings rest.WarningHandlerWithContext
	// Connect finds the cluster.
	Connect func() (*Cluster, error)

	watch bool
}

// NewOptions are those of the process that runs.
func NewOptions(version string) *Options {
	o := &Options{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Print:     genericclioptions.NewPrintFlags(""), Version: version,
		Clock: clock.RealClock{}, Lookup: os.LookupEnv, Terminal: terminal, Interval: 2 * time.Second, Warnings: rest.NoWarnings{},
	}
	o.Config = genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(requestsPerSecond).WithDiscoveryBurst(requestsAtOnce).
		WithWrapConfigFn(func(c *rest.Config) *rest.Config {
			c.UserAgent, c.QPS, c.Burst, c.WarningHandlerWithContext = "kubectl-odh/"+version, requestsPerSecond, requestsAtOnce, o.Warnings
			return c
		})
	*o.Config.Timeout = requestTimeout
	o.Connect = o.connect
	return o
}

func (o *Options) addTo(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.Config.AddFlags(flags)
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Show all namespaces.")
	flags.BoolVar(&o.NoColor, "no-color", false, "Print no color, even to a terminal. The variable NO_COLOR has the same effect.")
	flags.BoolVar(&o.ASCII, "ascii", false, "Draw with ASCII characters only.")
	flags.StringVar(&o.ManagerNamespace, "manager-namespace", "", "Namespace of the manager. By default its Deployment is found by name.")
}

// AddOutput gives a command the flag -o.
func (o *Options) AddOutput(c *cobra.Command) {
	o.Print.AddFlags(c)
	flag := c.Flag("output")
	flag.Usage = strings.Replace(flag.Usage, "(", "("+formatText+", "+formatWide+", ", 1)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append(o.Print.AllowedFormats(), formatText, formatWide), cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
}

// AddWatch gives a command the flag -w.
func (o *Options) AddWatch(c *cobra.Command) {
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Keep running, and print again whenever something changes.")
}

// Namespace that a flag names, empty for none.
func (o *Options) Namespace() string { return *o.Config.Namespace }

func (o *Options) check(*cobra.Command, []string) error {
	if o.AllNamespaces && o.Namespace() != "" {
		return fmt.Errorf("-n %s and -A contradict each other; leave one out", o.Namespace())
	}
	if format := *o.Print.OutputFormat; format != formatText && format != formatWide && format != "" {
		_, err := o.Print.ToPrinter()
		return err
	}
	return nil
}

func terminal() (columns int, is bool) {
	descriptor := int(os.Stdout.Fd())
	columns, _, err := term.GetSize(descriptor)
	if err != nil {
		return 0, term.IsTerminal(descriptor)
	}
	return columns, true
}

// Style finds out how text should look: colours only on a terminal, and lines of its width. Elsewhere lines are as long as what
// they say, for grep and the like. COLUMNS overrules what the terminal says.
func (o *Options) Style() screen.Style {
	columns, is := o.Terminal()
	if wanted, err := strconv.Atoi(o.environment("COLUMNS")); err == nil && wanted > 0 {
		columns = wanted
	}
	// The locale is what the first of these variables says, as for programs in C. Where none is set, as in containers and on Windows,
	// UTF-8 is what works nearly everywhere.
	locale := cmp.Or(o.environment("LC_ALL"), o.environment("LC_CTYPE"), o.environment("LANG"))
	utf8 := locale == "" || strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8")
	wide := *o.Print.OutputFormat == formatWide
	if wide {
		columns = 0 // lines are as long as it takes, as in kubectl
	}
	return screen.Style{
		Color: is && !o.NoColor && o.environment("NO_COLOR") == "" && o.environment("TERM") != "dumb",
		ASCII: o.ASCII || is && !utf8,
		Width: columns,
		Wide:  wide,
	}
}

// environment returns the value of a variable, empty when it is not set.
func (o *Options) environment(name string) string {
	value, _ := o.Lookup(name)
	return value
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
	return cluster, fetch.Reader{Objects: cluster.Dynamic, Metadata: cluster.Metadata, Set: set, Own: cluster.Namespace, Gaps: &fetch.Gaps{}}, err
}

// nowhere is the server that kubectl asks when no kubeconfig names one.
const nowhere = "http://localhost:8080"

// connect finds a cluster as kubectl does. Nothing is sent.
func (o *Options) connect() (*Cluster, error) {
	config, err := o.Config.ToRESTConfig()
	if err == nil && config.Host == nowhere && *o.Config.APIServer == "" {
		err = clientcmd.ErrEmptyConfig
	}
	if err != nil {
		return nil, o.notFound(err)
	}
	cluster := &Cluster{}
	if cluster.Namespace, _, err = o.Config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("finding the namespace: %w; use -n", err)
	}
	endless := rest.CopyConfig(config)
	endless.Timeout = 0
	var failed [4]error
	cluster.Discovery, failed[0] = discovery.NewDiscoveryClientForConfig(config)
	cluster.Dynamic, failed[1] = dynamic.NewForConfig(config)
	cluster.Metadata, failed[2] = metadata.NewForConfig(config)
	cluster.Pods, failed[3] = corev1client.NewForConfig(endless)
	if err := cmp.Or(failed[:]...); err != nil {
		return nil, fmt.Errorf("building the clients: %w", err)
	}
	return cluster, nil
}
