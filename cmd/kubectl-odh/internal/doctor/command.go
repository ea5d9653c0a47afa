package doctor

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const long = `Check the installation, and say how to fix what is wrong.

Checks the whole cluster once, whatever -n says. Each check is ok, or shows what
was found, why it matters, and how to fix it. What you may not read is unknown,
with the missing permission. How the resources are is shown by "status".

The exit code is 1 when a check fails, and 3 when none does and something is
unknown; warnings do not count.`

const examples = `  kubectl odh doctor
  kubectl odh doctor -o json | jq '.findings[] | select(.result == "fail")'`

// Command checks the installation.
func Command(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the installation, and say how to fix what is wrong", Long: long, Example: examples, Args: cobra.NoArgs,
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
