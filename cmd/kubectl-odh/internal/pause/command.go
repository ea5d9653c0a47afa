// Package pause has the commands that make the manager leave resources alone, and reconcile them again.
package pause

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const long = `Make the manager leave resources and their objects as they are, until resume.

Sets the annotation platform.opendatahub.io/paused. While it is set, the manager
neither changes nor repairs the objects of the resource. Admission webhooks still
check changes of the resource, and its deletion proceeds as usual.

On a RayCluster, the annotation has an effect only if an administrator allows it:
with the setting raycluster.allowPause, or by the same annotation on its namespace.`

// Pause sets the annotation.
func Pause(o *cli.Options) *cobra.Command {
	return command(o, &cobra.Command{
		Use: "pause " + cli.NamedUse, Short: "Make the manager leave resources as they are", Long: long,
		Example: "  kubectl odh pause mlflow/mlflow\n  kubectl odh pause -n team modelregistry -l app=demo",
	}, true)
}

// Resume removes the annotation.
func Resume(o *cli.Options) *cobra.Command {
	return command(o, &cobra.Command{
		Use: "resume " + cli.NamedUse, Short: "Make the manager reconcile paused resources again",
		Long: "Make the manager reconcile paused resources again.\n\nRemoves the annotation platform.opendatahub.io/paused.", Example: "  kubectl odh resume mlflow/mlflow",
	}, false)
}

func command(o *cli.Options, c *cobra.Command, paused bool) *cobra.Command {
	var selector string
	c.ValidArgsFunction = o.CompleteNamed
	c.RunE = func(c *cobra.Command, args []string) error {
		_, infos, err := o.Select(c.Name(), args, selector)
		if err != nil {
			return err
		}
		for _, info := range infos {
			if err := set(o, info, paused); err != nil {
				return fmt.Errorf("%s %s: %w", c.Name(), cli.NameOf(info), err)
			}
		}
		return nil
	}
	cli.AddSelector(c, &selector)
	return c
}

// set writes the annotation unless it already has the desired value.
func set(o *cli.Options, info *resource.Info, paused bool) error {
	kind := info.Mapping.GroupVersionKind.GroupKind()
	if kinds.ComponentOf(kind) == "" {
		return fmt.Errorf("the manager does not reconcile %s", kind)
	}
	done, value := "resumed", "null"
	if paused {
		done, value = "paused", `"true"`
	}
	annotations := info.Object.(*unstructured.Unstructured).GetAnnotations()
	if now, _ := names.Paused(annotations); now == paused && (paused || annotations[names.PausedAnnotation] == "") {
		fmt.Fprintf(o.Out, "%s already %s\n", cli.NameOf(info), done)
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, names.PausedAnnotation, value)
	if _, err := resource.NewHelper(info.Client, info.Mapping).WithFieldManager("kubectl-odh").
		Patch(info.Namespace, info.Name, types.MergePatchType, patch, &metav1.PatchOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s %s\n", cli.NameOf(info), done)
	if paused && kind == raycluster.GVK.GroupKind() {
		fmt.Fprintf(o.ErrOut, "Note: this has an effect only with the setting raycluster.allowPause, or the same annotation on namespace %s\n", info.Namespace)
	}
	return nil
}
