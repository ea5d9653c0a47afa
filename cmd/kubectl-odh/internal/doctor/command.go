package doctor

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

const long = `Look for what is wrong with the installation, and say what mends it.

Looks at the whole cluster once, whatever -n says, and tells for each check
whether it is ok, or what was found, why it matters, and what mends it. What you
may not read is unknown, with the right that is missing.

The exit code is 1 when a check fails, and 3 when none does and something is
unknown; warnings do not count.`

const examples = `  kubectl odh doctor
  kubectl odh doctor --all
  kubectl odh doctor -o json | jq '.findings[] | select(.result == "fail")'`

// Command looks for what is wrong.
func Command(o *cli.Options) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the installation", Long: long, Example: examples, Args: cobra.NoArgs,
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
				return newReport(judge(facts, ships)).view(all), nil
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Show what is ok too, one line for each finding.")
	return c
}

func (r Report) view(all bool) cli.View {
	v := cli.View{Kind: "Examination", Object: r, Text: func(s screen.Style) string { return r.render(s, all || s.Wide) }}
	switch {
	case r.Summary.Fail > 0:
		v.Err = cli.ErrWrong
	case r.Summary.Unknown > 0:
		v.Err = cli.ErrUnknown
	}
	return v
}

// Report is the outcome of all checks.
type Report struct {
	// OK tells that no check failed.
	OK       bool      `json:"ok"`
	Summary  Summary   `json:"summary"`
	Findings []Finding `json:"findings"`
}

// Summary counts findings.
type Summary struct {
	Fail    int `json:"fail"`
	Warn    int `json:"warn"`
	Unknown int `json:"unknown"`
	OK      int `json:"ok"`
}

func newReport(found []Finding) Report {
	r := Report{Findings: found}
	for _, f := range found {
		switch f.Result {
		case Fail:
			r.Summary.Fail++
		case Warn:
			r.Summary.Warn++
		case Unknown:
			r.Summary.Unknown++
		case OK:
			r.Summary.OK++
		}
	}
	r.OK = r.Summary.Fail == 0
	return r
}

// worst is the worst result among the findings of one check.
func worst(found []Finding) Result {
	return slices.MinFunc(found, byResult).Result
}
