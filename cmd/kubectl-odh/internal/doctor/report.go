// Package doctor checks an installation. It gathers facts once, with a bounded number of requests, and evaluates them in functions that
// depend on nothing else. If a permission is missing, the result is unknown and names the permission.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// check evaluates one aspect of the facts.
type check struct {
	name string
	// why says what a problem leads to, unless a finding has its own.
	why string
	// run returns the problems, and what to say where there are none; "" where the check does not apply.
	run func(*Facts, Shipped) (problems []Finding, fine string)
	// ofManager limits the check to installations whose manager was found, and to complete facts.
	ofManager bool
}

// checks in the order in which they are shown.
var checks = []check{
	{"server", "older API servers lack kinds and fields that the operator uses", checkServer, false},
	{manager, "without a running manager nothing is reconciled; what runs keeps running", checkManager, false},
	{"version", "this program checks against the manifests of its own version", checkVersion, true},
	{"settings", "a manager does not start with settings that contradict each other", checkSettings, true},
	{originals, "a former operator and this one write the same objects in turns", checkOriginals, false},
	{crds, "a manager that meets older CRDs loses fields or cannot store what it writes", checkCRDs, false},
	{"capabilities", "components wait while the APIs that they require are not served", checkCapabilities, false},
	{rights, "the manager cannot do its work; conditions and its log show what was denied", checkRights, true},
	{certificate, "API servers do not call webhooks whose certificate they do not trust", checkCertificate, true},
	{webhooks, "while a webhook with failurePolicy Fail does not answer, its kinds can be neither created nor changed", checkWebhooks, false},
	{references, "pods that use them do not start, or keep running with the values that they were started with", checkReferences, false},
	{runtimes, "models of the runtime are not served, or by the pods of an earlier spec", checkRuntimes, false},
}

// judge runs all checks. Findings have the name of their check, the bad ones first within each.
func judge(f *Facts, ships Shipped) []Finding {
	var all []Finding
	for _, c := range checks {
		found, fine := slices.Clone(f.Unread[c.name]), ""
		if !c.ofManager || f.Manager.Deployment != nil && len(found) == 0 {
			var problems []Finding
			problems, fine = c.run(f, ships)
			found = append(found, problems...)
		}
		if len(found) == 0 && fine != "" {
			found = []Finding{{Result: OK, Found: fine}}
		}
		for i := range found {
			found[i].Check = c.name
			if found[i].Result == Fail || found[i].Result == Warn {
				found[i].Why = cmp.Or(found[i].Why, c.why)
			}
		}
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Result], rank[b.Result]) })
		all = append(all, found...)
	}
	return all
}

// Result is the outcome of a check.
type Result string

// Results, from bad to good.
const (
	Fail    Result = "fail"
	Warn    Result = "warn"
	Unknown Result = "unknown"
	OK      Result = "ok"
)

var rank = map[Result]int{Fail: 0, Warn: 1, Unknown: 2, OK: 3}

// Finding is one thing that a check found.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Subject is what it is about; empty where that is the cluster as a whole.
	Subject string `json:"subject,omitempty"`
	// Found is the problem, Why its consequence, and Fix a command or a step that solves it.
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// Report is the outcome of all checks.
type Report struct {
	// OK tells that no check failed.
	OK bool `json:"ok"`
	// Summary counts findings.
	Summary  map[Result]int `json:"summary"`
	Findings []Finding      `json:"findings"`
}

func newReport(found []Finding) Report {
	count := map[Result]int{Fail: 0, Warn: 0, Unknown: 0, OK: 0}
	for _, f := range found {
		count[f.Result]++
	}
	return Report{OK: count[Fail] == 0, Summary: count, Findings: found}
}

var paints = map[Result]screen.Paint{Fail: screen.Red, Warn: screen.Yellow, Unknown: screen.Cyan, OK: screen.Green}

// render writes one line for each check, and below it what is wrong, with reason and fix.
func (r Report) render(s screen.Style) string {
	var b strings.Builder
	for i, f := range r.Findings {
		if i == 0 || r.Findings[i-1].Check != f.Check {
			fmt.Fprintf(&b, "%s  %s", s.Paint(paints[f.Result], fmt.Sprintf("%-7s", f.Result)), s.Paint(screen.Bold, f.Check))
			if f.Result == OK {
				b.WriteString("  " + s.Clip(f.Found, s.Room(len(f.Check)+11)) + "\n")
				continue
			}
			b.WriteString("\n")
		}
		// What several findings of a check have in common is printed once.
		shared := i+1 < len(r.Findings) && r.Findings[i+1].Check == f.Check && r.Findings[i+1].Why == f.Why && r.Findings[i+1].Fix == f.Fix
		f.render(&b, s, shared)
	}
	fmt.Fprintf(&b, "\n%d failed, %d warnings, %d unknown, %d ok\n", r.Summary[Fail], r.Summary[Warn], r.Summary[Unknown], r.Summary[OK])
	return b.String()
}

func (f Finding) render(b *strings.Builder, s screen.Style, short bool) {
	lines := slices.DeleteFunc([]string{f.Subject, f.Found}, func(text string) bool { return text == "" })
	fmt.Fprintf(b, "  %s %s\n", s.Paint(paints[f.Result], fmt.Sprintf("%-7s", f.Result)), screen.OneLine(strings.Join(lines, ": ")))
	for _, note := range [][2]string{{"why:", f.Why}, {"fix:", f.Fix}} {
		if !short && note[1] != "" {
			fmt.Fprintf(b, "          %s %s\n", s.Paint(screen.Dim, note[0]), screen.OneLine(note[1]))
		}
	}
}

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
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				facts, err := gather(ctx, o, ships)
				if err != nil {
					return cli.View{}, err
				}
				r := newReport(judge(facts, ships))
				return cli.View{Kind: "Examination", Object: r, Text: r.render, Err: cli.Judgement(!r.OK, r.Summary[Unknown] > 0)}, nil
			})
		},
	}
	o.AddOutput(c)
	return c
}
