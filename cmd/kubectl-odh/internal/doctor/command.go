package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const long = `Looks at the whole cluster once, whatever -n says, and tells for each check
whether it is ok, or what was found, why it matters, and what mends it. What you
may not read is unknown, with the right that is missing.

The exit code is 1 when a check fails, and 3 when none does and something is
unknown; warnings do not count.`

// Command looks for what is wrong.
func Command() cli.Command {
	return cli.Command{
		Name: "doctor", Short: "look for what is wrong with the installation, and say what mends it", Long: long,
		Examples: []string{"doctor", "doctor --all", "doctor -o json | jq '.findings[] | select(.result == \"fail\")'"},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			all := flags.Bool("all", false, "show what is ok too, one line for each finding")
			return func(ctx context.Context, call *cli.Call, args []string) error { return run(ctx, call, args, *all) }
		},
	}
}

func run(ctx context.Context, call *cli.Call, args []string, all bool) error {
	if len(args) > 0 {
		return cli.Usage("doctor takes no arguments, got %q", args[0])
	}
	ships, err := builtIn()
	if err != nil {
		return err
	}
	cluster, err := call.Cluster()
	if err != nil {
		return err
	}
	facts, err := gather(ctx, call, cluster, ships)
	if err != nil {
		return err
	}
	report := newReport(judge(facts, ships))
	if call.Output != cli.Text {
		err = call.Encode(report)
	} else {
		_, err = io.WriteString(call.Stdout, report.render(call.Style, all))
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	switch {
	case report.Summary.Fail > 0:
		return cli.ErrWrong
	case report.Summary.Unknown > 0:
		return cli.ErrUnknown
	}
	return nil
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
