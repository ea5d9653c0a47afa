package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Output formats.
const (
	Text = "text"
	JSON = "json"
	YAML = "yaml"
)

var formats = []string{Text, JSON, YAML}

// requestTimeout is how long one request may take unless somebody says otherwise. Each command sends several at once.
const requestTimeout = 20 * time.Second

// Options are the flags that all sub-commands have.
type Options struct {
	// Kubeconfig, Context, Namespace, As and AsGroups are those of kubectl.
	Kubeconfig, Context, Namespace, As string
	AsGroups                           []string
	// AllNamespaces looks at the whole cluster.
	AllNamespaces bool
	// Output is Text, JSON or YAML.
	Output string
	// NoColor and ASCII plain down the text.
	NoColor, ASCII bool
	// ManagerNamespace is where the manager runs; empty to have it found.
	ManagerNamespace string
	// RequestTimeout bounds each request; 0 for no bound.
	RequestTimeout time.Duration
}

func (o *Options) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of the kubeconfig; else $KUBECONFIG, ~/.kube/config, or the account of the pod")
	flags.StringVar(&o.Context, "context", "", "context of the kubeconfig to use")
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "namespace; without it status looks at all, and others use that of the context")
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "look at all namespaces")
	flags.StringVarP(&o.Output, "output", "o", Text, "text, json or yaml")
	flags.BoolVar(&o.NoColor, "no-color", false, "no colour, even on a terminal; so does the variable NO_COLOR")
	flags.BoolVar(&o.ASCII, "ascii", false, "draw with ASCII characters only")
	flags.StringVar(&o.ManagerNamespace, "manager-namespace", "", "namespace of the manager; without it, its Deployment is looked for by its name")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", requestTimeout, "how long a single request may take; 0 for no bound")
	flags.StringVar(&o.As, "as", "", "user to impersonate")
	flags.StringSliceVar(&o.AsGroups, "as-group", nil, "group to impersonate; may be given more than once")
}

func (o *Options) check() error {
	switch {
	case !slices.Contains(formats, o.Output):
		return Usage("-o %s: unknown format; use %s", o.Output, strings.Join(formats, ", "))
	case o.AllNamespaces && o.Namespace != "":
		return Usage("-n %s and -A contradict each other; leave one out", o.Namespace)
	case o.RequestTimeout < 0:
		return Usage("--request-timeout %s: a time cannot be negative; use 0 for no bound", o.RequestTimeout)
	case o.As == "" && len(o.AsGroups) > 0:
		return Usage("--as-group %s: name a user with --as too", strings.Join(o.AsGroups, ","))
	}
	return nil
}

// usageError is a mistake in the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// Usage is the error of a command that was called wrongly: say what, and the cure.
func Usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
