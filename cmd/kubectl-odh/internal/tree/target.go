package tree

import (
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// target is what a user asks for.
type target struct{ kind, name string }

// parse reads arguments as kubectl does: KIND/NAME, any number of them, or KIND NAME....
func parse(args []string) ([]target, error) {
	const cure = "name resources as KIND/NAME, such as mlflow/mlflow, or as KIND NAME"
	if len(args) == 0 {
		return nil, cli.Usage("tree: nothing to show; %s", cure)
	}
	var out []target
	if !strings.Contains(args[0], "/") {
		if len(args) == 1 {
			return nil, cli.Usage("tree %s: which one? %s", args[0], cure)
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, cli.Usage("tree %s %s: both forms at once; %s", args[0], name, cure)
			}
			out = append(out, target{args[0], name})
		}
		return out, nil
	}
	for _, arg := range args {
		kind, name, found := strings.Cut(arg, "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, cli.Usage("tree %s: not understood; %s", arg, cure)
		}
		out = append(out, target{kind, name})
	}
	return out, nil
}
