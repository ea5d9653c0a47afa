package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// figure is a row of the table.
type figure struct {
	name   string
	value  float64
	bound  float64
	atMost bool
	note   string
}

func (f figure) within() bool { return f.atMost == (f.value <= f.bound) || f.value == f.bound }

func (s *sources) figures() []figure {
	atMost := func(name string, value int, bound float64, note string) figure {
		return figure{name: name, value: float64(value), bound: bound, atMost: true, note: note}
	}
	return []figure{
		atMost("function, median lines", quantile(s.functions, 0.5), 10, ""),
		atMost("function, 95th percentile", quantile(s.functions, 0.95), 45, ""),
		atMost("function, longest", s.longest.value, 60, s.longest.where),
		atMost("file, 95th percentile lines", quantile(s.files, 0.95), 350, ""),
		atMost("file, longest", s.largest.value, 400, s.largest.where),
		atMost("nesting, 95th percentile", quantile(s.nestings, 0.95), 2, ""),
		atMost("nesting, deepest", s.deepest.value, 4, s.deepest.where),
		atMost("import depth", s.depth(), 14, "the plugin validates with the webhooks of the manager; the manager itself has 11"),
		atMost("production lines", s.production, 50_090, "includes some 5,000 lines for releases and upstream merges, 700 for sixty corrected defects, 90 for the folders of the take-over, and 2,300 for leader changes without a pause, restarts without certificate reads, fixes of security and installation, limits for authors, and reports of users; lower the bound when you can"),
		{name: "test lines per production line", value: float64(s.tests) / float64(max(1, s.production)), bound: 2,
			note: fmt.Sprintf("%d and %d", s.tests, s.production)},
		{name: "suppressed findings per 1,000 lines", value: 1000 * float64(s.suppressed) / float64(max(1, s.production)), bound: 0.2, atMost: true},
		atMost("panics in production code", s.panics, 0, ""),
	}
}

// report prints the figures and reports whether all are within their bounds.
func report(out io.Writer, figures []figure) bool {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	ok := true
	for _, f := range figures {
		sign, verdict := "≤", ""
		if !f.atMost {
			sign = "≥"
		}
		if !f.within() {
			ok, verdict = false, "OUT OF BOUNDS"
		}
		fmt.Fprintf(table, "%s\t%.4g\t%s %.4g\t%s\t%s\n", f.name, f.value, sign, f.bound, verdict, f.note)
	}
	return table.Flush() == nil && ok
}
