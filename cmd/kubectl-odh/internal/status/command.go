package status

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

const long = `Show the manager, its components and every resource that they reconcile.

The manager is found by the name of its Deployment. Its arguments, variables and
ConfigMaps show which components are enabled. Without a Deployment, for example
if the manager runs as a process, this is unknown.

Resources of all namespaces are shown unless -n names one. Those that need
attention come first. A resource is paused while its annotation
platform.opendatahub.io/paused is "true".

The exit code is 1 if the manager or a resource needs attention or is still
starting, and 3 if nothing needs attention but something could not be read.`

const examples = `  kubectl odh status
  kubectl odh status -n team --all
  kubectl odh status -o json | jq '.resources[] | select(.state == "Failed")'`

// Command shows how everything is.
func Command(o *cli.Options) *cobra.Command {
	var all bool
	var selector string
	c := &cobra.Command{
		Use: "status", Short: "Show the manager, its components and their resources", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				found, err := gather(ctx, o, cluster, selector)
				if err != nil {
					return cli.View{}, err
				}
				return view(o, newReport(found, o.Clock.Now()), all), nil
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Show every resource, even if there are more than fit on a screen.")
	c.Flags().StringVarP(&selector, "selector", "l", "", "Show only resources with these labels, as in kubectl.")
	o.AddWatch(c)
	o.AddOutput(c)
	return c
}

func view(o *cli.Options, r Report, all bool) cli.View {
	v := cli.View{
		Kind: "Status", Object: r, Changing: []any{r.OK, r.Components, r.Resources, r.Notes},
		Text: func(s screen.Style) string { return text{style: s, now: o.Clock.Now(), all: all || s.Wide}.render(r) },
	}
	for _, x := range r.Resources {
		v.Names = append(v.Names, metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: x.APIVersion, Kind: x.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name},
		})
	}
	switch {
	case !r.OK:
		v.Err = cli.ErrWrong
	case len(r.Notes) > 0:
		v.Err = cli.ErrUnknown
	}
	return v
}
