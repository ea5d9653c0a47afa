package tree

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
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
		Use: "tree " + cli.NamedUse, Short: "Show the objects that belong to a resource, down to the pods", Long: long, Example: examples,
		ValidArgsFunction: o.CompleteNamed,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.CheckNamed("tree", args, selector); err != nil {
				return err
			}
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				infos, err := o.Named(cluster, args, selector)
				if err != nil {
					return cli.View{}, err
				}
				return look(ctx, o, cluster, infos, all)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Also show ReplicaSets of previous pod templates.")
	cli.AddSelector(c, &selector)
	o.AddWatch(c)
	o.AddOutput(c)
	return c
}

// look makes the trees of some resources.
func look(ctx context.Context, o *cli.Options, cluster *cli.Cluster, infos []*resource.Info, all bool) (cli.View, error) {
	g, err := newGatherer(ctx, cluster)
	if err != nil {
		return cli.View{}, err
	}
	result := Result{OK: true}
	v := cli.View{Kind: "Tree"}
	for _, info := range infos {
		top := g.tree(ctx, info.Mapping.GroupVersionKind, info.Object.(*unstructured.Unstructured))
		top.walk(func(n *Node) {
			result.OK = result.OK && (n.hidden || n.State.OK())
			v.Names = append(v.Names, metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: n.APIVersion, Kind: n.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name},
			})
		})
		result.Trees = append(result.Trees, top)
	}
	result.Notes = g.notes()
	v.Object, v.Changing = result, result
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
	switch {
	case !result.OK:
		v.Err = cli.ErrWrong
	case len(result.Notes) > 0:
		v.Err = cli.ErrUnknown
	}
	return v, nil
}
