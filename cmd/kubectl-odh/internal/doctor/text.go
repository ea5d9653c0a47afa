package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

var paints = map[Result]screen.Paint{Fail: screen.Red, Warn: screen.Yellow, Unknown: screen.Cyan, OK: screen.Green}

// render writes one line for each check, and below it what is not well, with why and cure. All findings are shown when asked for.
func (r Report) render(s screen.Style, all bool) string {
	var b strings.Builder
	for _, group := range r.byCheck() {
		result := worst(group)
		fmt.Fprintf(&b, "%s  %s", s.Paint(paints[result], fmt.Sprintf("%-7s", result)), s.Paint(screen.Bold, group[0].Check))
		if result == OK && !all {
			b.WriteString("  " + s.Clip(summaryOf(group), s.Room(len(group[0].Check)+11)) + "\n")
			continue
		}
		b.WriteString("\n")
		renderAll(&b, s, slices.DeleteFunc(slices.Clone(group), func(f Finding) bool { return f.Result == OK && !all }))
	}
	fmt.Fprintf(&b, "\n%d failed, %d warnings, %d unknown, %d ok\n", r.Summary.Fail, r.Summary.Warn, r.Summary.Unknown, r.Summary.OK)
	return b.String()
}

// byCheck groups findings that stand beside each other.
func (r Report) byCheck() [][]Finding {
	var out [][]Finding
	for _, f := range r.Findings {
		if n := len(out); n > 0 && out[n-1][0].Check == f.Check {
			out[n-1] = append(out[n-1], f)
			continue
		}
		out = append(out, []Finding{f})
	}
	return out
}

// summaryOf says in one line what was found of a check that is well.
func summaryOf(group []Finding) string {
	if len(group) == 1 {
		return group[0].line()
	}
	same := !slices.ContainsFunc(group, func(f Finding) bool { return f.Found != group[0].Found })
	if same {
		return fmt.Sprintf("all %d: %s", len(group), screen.OneLine(group[0].Found))
	}
	lines := make([]string, 0, len(group))
	for _, f := range group {
		lines = append(lines, f.line())
	}
	return strings.Join(lines, "; ")
}

// line is what was found, with its subject.
func (f Finding) line() string {
	if f.Subject == "" {
		return screen.OneLine(f.Found)
	}
	return screen.OneLine(f.Subject + ": " + f.Found)
}

// renderAll writes findings. What follows from several of them and mends them all is said once.
func renderAll(b *strings.Builder, s screen.Style, found []Finding) {
	for i, f := range found {
		fmt.Fprintf(b, "  %s %s\n", s.Paint(paints[f.Result], fmt.Sprintf("%-7s", f.Result)), f.line())
		if i+1 < len(found) && found[i+1].Why == f.Why && found[i+1].Cure == f.Cure {
			continue
		}
		if f.Why != "" {
			fmt.Fprintf(b, "          %s %s\n", s.Paint(screen.Dim, "why: "), screen.OneLine(f.Why))
		}
		if f.Cure != "" {
			fmt.Fprintf(b, "          %s %s\n", s.Paint(screen.Dim, "cure:"), screen.OneLine(f.Cure))
		}
	}
}
