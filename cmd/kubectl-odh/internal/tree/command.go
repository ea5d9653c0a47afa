// Package tree is the sub-command that shows what a resource consists of in the cluster, down to the pods, and how each part is.
//
// What belongs to a resource is found by owner references, and where there are none, as with data that is kept, objects in
// other namespaces and those of cluster scope, by labels: see kin in forest.go. Only metadata is listed; of what is shown, the objects
// whose health depends on more than that they exist are then read.
package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

const long = `Show the objects that belong to a resource, down to the pods, and the state of each.

Resources are named as in kubectl: mlflow/mlflow, deployment web, mr -l team=a.
Any kind of the cluster can be shown.

The objects are found by owner references and by the labels of the manager, in
all namespaces that you are allowed to read. Some are marked:

  (by label)   has no owner reference, because it is in another namespace or
               cluster-scoped
  (kept)       holds data, and remains when the resource is deleted
  (serves it)  is a runtime that may serve a model, with its pods in the
               namespace of the model

The exit code is 1 if an object in a tree needs attention or is still starting,
and 3 if none does but something could not be read.`

const examples = `  kubectl odh tree mlflow/mlflow
  kubectl odh tree -n team predictor/digits appwrapper/train
  kubectl odh tree -n team deployment web`

// Result is what the command prints for programs.
type Result struct {
	// OK tells that nothing in the trees is wrong.
	OK    bool    `json:"ok"`
	Trees []*Node `json:"trees"`
	// Notes tell what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Command shows what resources consist of.
func Command(o *cli.Options) *cobra.Command {
	var all bool
	var selector string
	c := &cobra.Command{
		Use: "tree (KIND/NAME... | KIND NAME... | KIND -l LABELS)", Short: "Show the objects that belong to a resource, down to the pods", Long: long, Example: examples,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return complete(o)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				return look(ctx, o, args, selector, all)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Also show ReplicaSets of previous pod templates.")
	c.Flags().StringVarP(&selector, "selector", "l", "", "Select the resources of a kind that have these labels.")
	o.AddWatch(c)
	o.AddOutput(c)
	return c
}

// named reads resources by their names, as kubectl does.
func named(o *cli.Options, cluster *cli.Cluster) *resource.Builder {
	return resource.NewBuilder(o.Config).Unstructured().NamespaceParam(cluster.Namespace).DefaultNamespace().Flatten()
}

// complete proposes the resources of our components.
func complete(o *cli.Options) ([]cobra.Completion, cobra.ShellCompDirective) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ours []string
	for _, k := range kinds.All() {
		ours = append(ours, k.GroupKind().String())
	}
	infos, _ := named(o, cluster).ContinueOnError().ResourceTypeOrNameArgs(true, strings.Join(ours, ",")).Do().Infos() // what cannot be read is not proposed
	var out []cobra.Completion
	for _, info := range infos {
		out = append(out, strings.ToLower(info.Mapping.GroupVersionKind.Kind)+"/"+info.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// check returns an error unless the arguments name resources of one namespace.
func check(o *cli.Options, args []string, selector string) error {
	switch {
	case len(args) == 0:
		return errors.New("tree: name resources as KIND/NAME, such as mlflow/mlflow, or as KIND NAME")
	case len(args) == 1 && !strings.Contains(args[0], "/") && selector == "":
		return fmt.Errorf("tree %s: which one? Name resources as KIND/NAME, or choose them with -l", args[0])
	case o.AllNamespaces:
		return errors.New("tree -A: a resource is in one namespace; name it with -n")
	}
	return nil
}

// look makes the trees of the resources that arguments name.
func look(ctx context.Context, o *cli.Options, args []string, selector string, all bool) (cli.View, error) {
	if err := check(o, args, selector); err != nil {
		return cli.View{}, err
	}
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return cli.View{}, err
	}
	infos, err := named(o, cluster).LabelSelectorParam(selector).ResourceTypeOrNameArgs(false, args...).Do().Infos()
	if err != nil {
		return cli.View{}, err
	}
	g := newGatherer(reader)
	result := Result{OK: true}
	v := cli.View{Kind: "Tree"}
	for _, info := range infos {
		top := g.tree(ctx, info.Mapping.GroupVersionKind, info.Object.(*unstructured.Unstructured))
		top.walk(func(n *Node) {
			result.OK = result.OK && (n.State.OK() || apierrors.IsForbidden(n.err))
			v.Names = append(v.Names, cli.Name(n.item.kind.GroupKind(), n.Name))
		})
		result.Trees = append(result.Trees, top)
	}
	result.Notes = g.notes()
	v.Object, v.Changing, v.Err = result, result, cli.Judgement(!result.OK, len(result.Notes) > 0)
	v.Text = func(s screen.Style) string {
		var parts []string
		for _, top := range result.Trees {
			parts = append(parts, draw(top, s, o.Clock.Now(), all))
		}
		if len(result.Notes) > 0 {
			parts = append(parts, s.Notes(result.Notes))
		}
		return strings.Join(parts, "\n")
	}
	return v, nil
}

// guides lead the eye from a node to those below it.
type guides struct{ branch, last, line, blank string }

var (
	boxes = guides{"├─ ", "└─ ", "│  ", "   "}
	ascii = guides{"|- ", "`- ", "|  ", "   "}
)

// marks follow the names of nodes that are related to the one above in another way than by ownership.
var marks = map[Relation]string{Kept: " (kept)", Labelled: " (by label)", Serving: " (serves it)"}

// drawing is a tree as lines of text.
type drawing struct {
	style screen.Style
	// all shows ReplicaSets of former templates too; else hidden counts them.
	all    bool
	hidden int

	guides guides
	lines  []screen.Line
}

// draw returns the text of a tree.
func draw(top *Node, style screen.Style, now time.Time, all bool) string {
	d := &drawing{style: style, all: all, guides: boxes}
	if style.ASCII {
		d.guides = ascii
	}
	d.add(top, "", "")
	columns := "RESOURCE NAMESPACE STATE AGE REASON MESSAGE"
	if !slices.ContainsFunc(d.lines, func(l screen.Line) bool { return l.Namespace != top.Namespace }) {
		columns = "RESOURCE STATE AGE REASON MESSAGE"
	}
	text := style.Listing(now, d.lines, strings.Fields(columns)...)
	if d.hidden > 0 {
		text += fmt.Sprintf("ReplicaSets of former templates that are not shown: %d; --all shows them.\n", d.hidden)
	}
	return text
}

func (d *drawing) add(n *Node, before, below string) {
	children := n.Children
	if !d.all {
		children = slices.DeleteFunc(slices.Clone(children), former)
		d.hidden += len(n.Children) - len(children)
	}
	line := screen.Line{
		Guide: before, Below: below + d.guides.blank, Name: n.Kind + "/" + n.Name + marks[n.Relation], Namespace: n.Namespace,
		Since: n.Created, Verdict: n.Verdict,
	}
	if len(children) > 0 {
		line.Below = below + d.guides.line
	}
	if n.State.OK() && !d.style.Wide && n.Message != "" { // it has no line of its own
		line.Reason = strings.TrimPrefix(n.Reason+", "+n.Message, ", ")
	}
	d.lines = append(d.lines, line)
	for i, child := range children {
		if i == len(children)-1 {
			d.add(child, below+d.guides.last, below+d.guides.blank)
		} else {
			d.add(child, below+d.guides.branch, below+d.guides.line)
		}
	}
}

// former tells whether a node is a ReplicaSet of a former pod template, which is kept for rollbacks.
func former(n *Node) bool {
	return n.Kind == "ReplicaSet" && n.State == health.Idle && len(n.Children) == 0
}
