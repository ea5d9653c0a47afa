package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

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
	// Found is what is there, Why what it leads to, Fix a command or a step against it.
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// byResult orders findings from bad to good.
func byResult(a, b Finding) int { return cmp.Compare(rank[a.Result], rank[b.Result]) }

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
	count := map[Result]int{}
	for _, f := range found {
		count[f.Result]++
	}
	return Report{OK: count[Fail] == 0, Summary: Summary{count[Fail], count[Warn], count[Unknown], count[OK]}, Findings: found}
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
		f.render(&b, s, i+1 < len(r.Findings) && r.Findings[i+1].sharesFix(f))
	}
	fmt.Fprintf(&b, "\n%d failed, %d warnings, %d unknown, %d ok\n", r.Summary.Fail, r.Summary.Warn, r.Summary.Unknown, r.Summary.OK)
	return b.String()
}

// sharesFix tells that two findings of a check have the same reason and fix, which are then printed once.
func (f Finding) sharesFix(other Finding) bool {
	return f.Check == other.Check && f.Why == other.Why && f.Fix == other.Fix
}

func (f Finding) render(b *strings.Builder, s screen.Style, short bool) {
	lines := slices.DeleteFunc([]string{f.Subject, f.Found}, func(text string) bool { return text == "" })
	fmt.Fprintf(b, "  %s %s\n", s.Paint(paints[f.Result], fmt.Sprintf("%-7s", f.Result)), screen.OneLine(strings.Join(lines, ": ")))
	if short {
		return
	}
	if f.Why != "" {
		fmt.Fprintf(b, "          %s %s\n", s.Paint(screen.Dim, "why:"), screen.OneLine(f.Why))
	}
	if f.Fix != "" {
		fmt.Fprintf(b, "          %s %s\n", s.Paint(screen.Dim, "fix:"), screen.OneLine(f.Fix))
	}
}
