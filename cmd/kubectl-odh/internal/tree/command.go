package tree

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const long = `Kinds may be written as in kubectl: mlflow, mlf, MLflow,
mlflows.mlflow.opendatahub.io. Any kind of the cluster can be shown.

Parts are found by owner references and by the labels of the manager, in all
namespaces as far as you may look. Some are marked:

  (by label)   has no owner reference, since it is in another place
  (kept)       holds data, and stays when the resource goes
  (serves it)  is a runtime that may serve a model, with its pods in the
               namespace of the model

The exit code is 1 when a part of a tree needs attention, also while it is
starting.`

// Result is what the command prints for programs.
type Result struct {
	// OK tells that nothing in the trees is wrong.
	OK    bool    `json:"ok"`
	Trees []*Node `json:"trees"`
	// Notes tell what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Command shows what resources consist of.
func Command() cli.Command {
	return cli.Command{
		Name: "tree", Args: "KIND/NAME...", Short: "show what a resource consists of, down to the pods, and how each part is", Long: long,
		Examples: []string{"tree mlflow/mlflow", "tree -n team predictor/digits appwrapper/train", "tree -n team deployment web"},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			all := flags.Bool("all", false, "show ReplicaSets of former templates too")
			return func(ctx context.Context, call *cli.Call, args []string) error { return run(ctx, call, args, *all) }
		},
	}
}

func run(ctx context.Context, call *cli.Call, args []string, all bool) error {
	targets, err := parse(args)
	if err != nil {
		return err
	}
	if call.AllNamespaces {
		return cli.Usage("tree -A: a resource is in one namespace; name it with -n, its parts are found everywhere")
	}
	cluster, err := call.Cluster()
	if err != nil {
		return err
	}
	g, err := newGatherer(ctx, cluster)
	if err != nil {
		return err
	}
	result := Result{OK: true}
	for _, t := range targets {
		top, err := g.tree(ctx, t)
		if err != nil {
			return err
		}
		top.walk(func(n *Node) { result.OK = result.OK && n.State.OK() })
		result.Trees = append(result.Trees, top)
	}
	result.Notes = g.notes()
	if call.Output != cli.Text {
		err = call.Encode(result)
	} else {
		_, err = io.WriteString(call.Stdout, result.text(call, all))
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !result.OK {
		return cli.ErrWrong
	}
	return nil
}

// text of all trees, with an empty line between them.
func (r Result) text(call *cli.Call, all bool) string {
	parts := make([]string, 0, len(r.Trees)+1)
	for _, top := range r.Trees {
		parts = append(parts, draw(top, call.Style, call.Clock.Now(), all))
	}
	if len(r.Notes) > 0 {
		parts = append(parts, call.Style.Notes(r.Notes))
	}
	return strings.Join(parts, "\n")
}
