package doctor

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const long = `Check the installation, and show how to fix problems.

Checks the whole cluster once, even if -n is set. Each check is ok, or shows what
was found, why it matters, and how to fix it. If you lack a permission, the check
is unknown and names that permission. "status" shows the state of the resources.

The exit code is 1 if a check fails, and 3 if none fails but one is unknown.
Warnings do not count.`

const examples = `  kubectl odh doctor
  kubectl odh doctor -o json | jq '.findings[] | select(.result == "fail")'`

// Command checks the installation.
func Command(o *cli.Options) *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Check the installation, and show how to fix problems", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ships, err := builtIn()
			if err != nil {
				return err
			}
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				facts, err := gather(ctx, o, cluster, ships)
				if err != nil {
					return cli.View{}, err
				}
				return newReport(judge(facts, ships)).view(), nil
			})
		},
	}
	o.AddOutput(c)
	return c
}

func (r Report) view() cli.View {
	v := cli.View{Kind: "Examination", Object: r, Text: r.render}
	switch {
	case r.Summary.Fail > 0:
		v.Err = cli.ErrWrong
	case r.Summary.Unknown > 0:
		v.Err = cli.ErrUnknown
	}
	return v
}
