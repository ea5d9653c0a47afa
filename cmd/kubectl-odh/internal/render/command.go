package render

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/review"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const long = `Show the objects that the manager would create for custom resources.

Reads custom resources, as YAML or JSON, and prints the objects that the manager
would create for them, one document each. What the webhooks of the manager would
refuse is an error, see "validate". Actions that are not objects, such as
the registration of a model in its mesh, are printed before them as a comment.

Without --cluster, no cluster is read: --platform selects which APIs are assumed
to be served, and settings come from the variables that the manager reads, such
as MLFLOW_IMAGE, and from its flags, such as --namespace, which can follow after
"--".

With --cluster, the served APIs and the settings come from the current cluster,
and owner references have the UIDs of that cluster. Objects that could not be
read are reported on the standard error, and the exit code is 3. kubectl shows the differences to the
objects in the cluster:

  kubectl odh render -f mlflow.yaml --cluster | kubectl diff -f -

Kinds:
  `

// mlflowVersion is the release that offline settings assume; that of a real manager is its own.
const mlflowVersion = "3.14.0"

// options are the flags of the command.
type options struct {
	*cli.Options
	kinds          render.Kinds
	file, platform string
	cluster        bool
}

const examples = `  kubectl odh render -f mlflow.yaml
  kubectl odh render -f ray.yaml -n team --platform openshift
  kubectl odh render -f mlflow.yaml -- --namespace=tracking
  kubectl odh render -f mlflow.yaml --cluster`

// Command shows what the manager would create for custom resources of these kinds.
func Command(kinds render.Kinds) cli.Command {
	return func(common *cli.Options) *cobra.Command {
		o := options{Options: common, kinds: kinds}
		c := &cobra.Command{
			Use: "render -f FILE [-- MANAGER-FLAGS...]", Short: "Show the objects that the manager would create for custom resources",
			Long: long + strings.Join(kinds.Names(), "\n  "), Example: examples,
			RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
		}
		c.Flags().StringVarP(&o.file, "filename", "f", "", `File with custom resources; "-" reads the standard input.`)
		c.Flags().StringVar(&o.platform, "platform", render.DefaultPlatform, "Kind of cluster to assume: "+strings.Join(render.Platforms(), ", ")+".")
		c.Flags().BoolVar(&o.cluster, "cluster", false, "Take the served APIs and the settings from the current cluster.")
		o.AddOutput(c)
		return c
	}
}

func (o options) run(ctx context.Context, args []string) error {
	documents, err := o.read("render")
	if err != nil {
		return err
	}
	if !o.cluster {
		env, err := o.offline(ctx, args)
		if err != nil {
			return err
		}
		same := func(obj *unstructured.Unstructured) (*unstructured.Unstructured, render.Env) { return obj, env }
		return o.show(ctx, documents, same, func() []string { return nil })
	}
	if len(args) > 0 {
		return fmt.Errorf("render: %q are settings, which come from the cluster; leave them out, or leave out --cluster", args)
	}
	live, err := connect(ctx, o.Options)
	if err != nil {
		return err
	}
	stored := func(obj *unstructured.Unstructured) (*unstructured.Unstructured, render.Env) {
		return live.stored(ctx, obj)
	}
	return o.show(ctx, documents, stored, live.notes)
}

func (o options) read(command string) ([]*unstructured.Unstructured, error) {
	if o.file == "" {
		return nil, fmt.Errorf(`%s: name the file with custom resources: %s -f FILE ("-" reads the standard input)`, command, command)
	}
	in := o.In
	if o.file != "-" {
		text, err := os.ReadFile(o.file)
		if err != nil {
			return nil, fmt.Errorf("reading the custom resources: %w", err)
		}
		in = bytes.NewReader(text)
	}
	return render.Documents(in)
}

// offline is an assumed cluster with every component on, so that every kind can be rendered.
func (o options) offline(ctx context.Context, args []string) (render.Env, error) {
	served, err := render.Platform(o.platform)
	if err != nil {
		return render.Env{}, fmt.Errorf("render: %w", err)
	}
	program := config.Program{Components: ours.Names(), Selection: ours.Names(), MLflowVersion: mlflowVersion}
	loaded, err := config.Load(program, args, o.Lookup, os.ReadFile)
	if err != nil {
		return render.Env{}, fmt.Errorf("render: %w", err)
	}
	return render.Env{Config: loaded, Capabilities: served, Version: o.Version, Namespace: o.Namespace(), Review: review.In(ctx)}, nil
}

// inCluster returns a document as it is in the cluster to render for, and that cluster.
type inCluster func(*unstructured.Unstructured) (*unstructured.Unstructured, render.Env)

// show prints the objects of documents. What could not be read for it is reported on the standard error, apart from the objects.
func (o options) show(ctx context.Context, documents []*unstructured.Unstructured, in inCluster, unread func() []string) error {
	var text bytes.Buffer
	l := list{APIVersion: "v1", Kind: "List", Items: []*unstructured.Unstructured{}}
	for _, obj := range documents {
		result, err := o.kinds.Render(in(obj))
		if err != nil {
			return err
		}
		if err := result.Write(&text); err != nil {
			return err
		}
		l.Items, l.Notes = append(l.Items, result.Objects...), append(l.Notes, result.Notes...)
	}
	var complete error
	for _, note := range unread() {
		fmt.Fprintf(o.ErrOut, "Note: %s\n", note)
		l.Notes, complete = append(l.Notes, note), cli.ErrUnknown
	}
	if *o.Print.OutputFormat == "yaml" {
		*o.Print.OutputFormat = "" // the text is YAML, one document for each object
	}
	return o.Show(ctx, func(context.Context) (cli.View, error) {
		return cli.View{Object: l, Names: l.names(), Text: func(screen.Style) string { return text.String() }, Err: complete}, nil
	})
}

// list is what -o json prints: one List, and the notes beside it.
type list struct {
	APIVersion string                       `json:"apiVersion"`
	Kind       string                       `json:"kind"`
	Items      []*unstructured.Unstructured `json:"items"`
	Notes      []string                     `json:"notes,omitempty"`
}

func (l list) names() []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for _, u := range l.Items {
		out = append(out, metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}, ObjectMeta: metav1.ObjectMeta{Name: u.GetName()},
		})
	}
	return out
}
