package tree

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
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

The exit code is 1 if an object in a tree needs attention or is still starting.`

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
		ValidArgsFunction: complete(o),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("tree: nothing to show; name resources as KIND/NAME, such as mlflow/mlflow, or as KIND NAME")
			case len(args) == 1 && !strings.Contains(args[0], "/") && selector == "":
				return errors.New("tree " + args[0] + ": which one? Name resources as KIND/NAME, or choose them with -l")
			case o.AllNamespaces:
				return errors.New("tree -A: a resource is in one namespace; name it with -n, its parts are found everywhere")
			}
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				infos, err := resource.NewBuilder(o.Config).Unstructured().NamespaceParam(cluster.Namespace).DefaultNamespace().
					LabelSelectorParam(selector).ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
				if err != nil {
					return cli.View{}, err
				}
				return look(ctx, o, cluster, infos, all)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Also show ReplicaSets of previous pod templates.")
	c.Flags().StringVarP(&selector, "selector", "l", "", "Show the resources of a kind that have these labels.")
	o.AddWatch(c)
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
			result.OK = result.OK && n.State.OK()
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
	if !result.OK {
		v.Err = cli.ErrWrong
	}
	return v, nil
}

// complete proposes the resources of our components.
func complete(o *cli.Options) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var kinds []string
		for _, k := range ours.AllKinds() {
			kinds = append(kinds, k.Kind+"."+k.Group)
		}
		cluster, err := o.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		infos, _ := resource.NewBuilder(o.Config).Unstructured().NamespaceParam(cluster.Namespace).DefaultNamespace().ContinueOnError().
			ResourceTypeOrNameArgs(true, strings.Join(kinds, ",")).Flatten().Do().Infos() // what cannot be read is not proposed
		var out []cobra.Completion
		for _, info := range infos {
			out = append(out, strings.ToLower(info.Mapping.GroupVersionKind.Kind)+"/"+info.Name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
