package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
)

// NamedUse is how the usage of a command shows that it takes resources as [Options.Named] does.
const NamedUse = "(KIND/NAME... | KIND NAME... | KIND -l LABELS)"

// AddSelector gives a command that takes resources the flag -l.
func AddSelector(c *cobra.Command, selector *string) {
	c.Flags().StringVarP(selector, "selector", "l", "", "Select the resources of a kind that have these labels.")
}

// CheckNamed says what is wrong with arguments that should name resources of one namespace.
func (o *Options) CheckNamed(command string, args []string, selector string) error {
	switch {
	case len(args) == 0:
		return errors.New(command + ": name resources as KIND/NAME, such as mlflow/mlflow, or as KIND NAME")
	case len(args) == 1 && !strings.Contains(args[0], "/") && selector == "":
		return errors.New(command + " " + args[0] + ": which one? Name resources as KIND/NAME, or choose them with -l")
	case o.AllNamespaces:
		return errors.New(command + " -A: a resource is in one namespace; name it with -n")
	}
	return nil
}

// Named reads the resources that arguments name as in kubectl.
func (o *Options) Named(cluster *Cluster, args []string, selector string) ([]*resource.Info, error) {
	return o.builder(cluster).LabelSelectorParam(selector).ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
}

// Select checks the arguments of a command, connects, and reads the resources that they name.
func (o *Options) Select(command string, args []string, selector string) (*Cluster, []*resource.Info, error) {
	if err := o.CheckNamed(command, args, selector); err != nil {
		return nil, nil, err
	}
	cluster, err := o.Connect()
	if err != nil {
		return nil, nil, err
	}
	infos, err := o.Named(cluster, args, selector)
	return cluster, infos, err
}

// NameOf is the name of a resource as -o name prints it.
func NameOf(info *resource.Info) string {
	return strings.ToLower(info.Mapping.GroupVersionKind.GroupKind().String()) + "/" + info.Name
}

func (o *Options) builder(cluster *Cluster) *resource.Builder {
	return resource.NewBuilder(o.Config).Unstructured().NamespaceParam(cluster.Namespace).DefaultNamespace()
}

// CompleteNamed proposes the resources of our components.
func (o *Options) CompleteNamed(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var kinds []string
	for _, k := range ours.AllKinds() {
		kinds = append(kinds, k.Kind+"."+k.Group)
	}
	cluster, err := o.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	infos, _ := o.builder(cluster).ContinueOnError().ResourceTypeOrNameArgs(true, strings.Join(kinds, ",")).Flatten().Do().Infos() // what cannot be read is not proposed
	var out []cobra.Completion
	for _, info := range infos {
		out = append(out, strings.ToLower(info.Mapping.GroupVersionKind.Kind)+"/"+info.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
