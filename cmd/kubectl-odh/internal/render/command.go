package render

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const long = `Reads custom resources, as YAML or JSON, and prints the objects that the manager
would make for them, one document each; what is no object, such as the
registration of a model in its mesh, stands before them as a comment.

Without --cluster nothing is asked of a cluster: --platform says what it
pretends to serve, and settings come from the variables that the manager reads,
such as MLFLOW_IMAGE, and from its flags, such as --namespace, which may follow
after "--".

With --cluster, what is served and the settings come from the current cluster;
what could not be read is told on the standard error. --diff prints how the
objects there differ in the fields that the manager sets, with exit code 1 when
they do.

Kinds:
  `

// mlflowVersion is the release that offline settings assume; that of a real manager is its own.
const mlflowVersion = "3.14.0"

// options are the flags of the command.
type options struct {
	kinds          render.Kinds
	file, platform string
	cluster, diff  bool
}

// Command shows what custom resources of these kinds bring about.
func Command(kinds render.Kinds) cli.Command {
	return cli.Command{
		Name: "render", Args: "-f FILE [-- MANAGER-FLAGS...]", Short: "show the objects that custom resources bring about",
		Long: long + strings.Join(kinds.Names(), "\n  "),
		Examples: []string{
			"render -f mlflow.yaml", "render -f ray.yaml -n team --platform openshift", "render -f mlflow.yaml -- --namespace=tracking", "render -f mlflow.yaml --diff",
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			o := options{kinds: kinds}
			flags.StringVarP(&o.file, "filename", "f", "", `file with custom resources; "-" reads the standard input`)
			flags.StringVar(&o.platform, "platform", render.DefaultPlatform, "cluster to pretend: "+strings.Join(render.Platforms(), ", "))
			flags.BoolVar(&o.cluster, "cluster", false, "take what is served, and the settings, from the current cluster")
			flags.BoolVar(&o.diff, "diff", false, "print how the objects in the cluster differ; implies --cluster")
			return func(ctx context.Context, call *cli.Call, args []string) error { return o.run(ctx, call, args) }
		},
	}
}

func (o options) run(ctx context.Context, call *cli.Call, args []string) error {
	if o.file == "" {
		return cli.Usage(`render: name the file with custom resources: render -f FILE ("-" reads the standard input)`)
	}
	documents, err := o.read(call)
	if err != nil {
		return err
	}
	if !o.cluster && !o.diff {
		env, err := o.offline(call, args)
		if err != nil {
			return err
		}
		return o.show(call, documents, env, func() []string { return nil })
	}
	if len(args) > 0 {
		return cli.Usage("render: %q are settings, which come from the cluster; leave them out, or leave out --cluster and --diff", args)
	}
	live, err := connect(ctx, call)
	if err != nil {
		return err
	}
	if !o.diff {
		return o.show(call, documents, live.env, live.notes)
	}
	err = live.compare(ctx, call, o.kinds, documents)
	tell(call, live.notes())
	return err
}

// tell says on the standard error what could not be read, where it does not disturb what reads the objects.
func tell(call *cli.Call, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(call.Stderr, "Note: %s\n", note)
	}
}

func (o options) read(call *cli.Call) ([]*unstructured.Unstructured, error) {
	in := call.Stdin
	if o.file != "-" {
		text, err := os.ReadFile(o.file)
		if err != nil {
			return nil, fmt.Errorf("reading the custom resources: %w", err)
		}
		in = bytes.NewReader(text)
	}
	return render.Documents(in)
}

// offline is a pretended cluster with every component on, so that whatever is asked for can be shown.
func (o options) offline(call *cli.Call, args []string) (render.Env, error) {
	served, err := render.Platform(o.platform)
	if err != nil {
		return render.Env{}, cli.Usage("render: %s", err)
	}
	program := config.Program{Components: ours.Names(), Selection: ours.Names(), MLflowVersion: mlflowVersion}
	loaded, err := config.Load(program, args, call.Lookup, os.ReadFile)
	if err != nil {
		return render.Env{}, cli.Usage("render: %s", err)
	}
	return render.Env{Config: loaded, Capabilities: served, Version: call.Version, Namespace: call.Namespace}, nil
}

// show prints what documents bring about, and what could not be read for it.
func (o options) show(call *cli.Call, documents []*unstructured.Unstructured, env render.Env, unread func() []string) error {
	var all []render.Result
	for _, obj := range documents {
		result, err := o.kinds.Render(obj, env)
		if err != nil {
			return err
		}
		all = append(all, result)
	}
	missing := unread()
	tell(call, missing)
	if call.Output == cli.JSON {
		return call.Encode(listOf(all, missing))
	}
	for _, result := range all {
		if err := result.Write(call.Stdout); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// list is what -o json prints: one List, and the notes beside it.
type list struct {
	APIVersion string                       `json:"apiVersion"`
	Kind       string                       `json:"kind"`
	Items      []*unstructured.Unstructured `json:"items"`
	Notes      []string                     `json:"notes,omitempty"`
}

func listOf(results []render.Result, more []string) list {
	l := list{APIVersion: "v1", Kind: "List", Items: []*unstructured.Unstructured{}}
	for _, r := range results {
		l.Items = append(l.Items, r.Objects...)
		l.Notes = append(l.Notes, r.Notes...)
	}
	l.Notes = append(l.Notes, more...)
	return l
}

// printer writes lines and keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}
