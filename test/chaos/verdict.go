package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict is a verdict of operator-chaos.
type verdict string

const (
	// resilient: everything is restored in time, and the manager is idle.
	resilient verdict = "Resilient"
	// degraded: everything is restored, but later than the bound.
	degraded verdict = "Degraded"
	// failed: something is lost, duplicated, left behind or not repaired.
	failed verdict = "Failed"
	// inconclusive: the fault did not occur, or the scenario returned an error.
	inconclusive verdict = "Inconclusive"
)

// row is the result of a scenario.
type row struct {
	Scenario string `json:"scenario"`
	Fault    string `json:"fault"`
	// Injections are the types of operator-chaos that the scenario covers.
	Injections []string      `json:"injections,omitempty"`
	Verdict    verdict       `json:"verdict"`
	Recovery   time.Duration `json:"recoveryNanoseconds"`
	Bound      time.Duration `json:"boundNanoseconds"`
	// Writes is the number of writes of the manager, of crashes for the crash scenarios, and of steps for the scenario random.
	Writes int `json:"writes"`
	// Deviations are the differences from the state before the fault.
	Deviations []string `json:"deviations,omitempty"`
	Remark     string   `json:"remark,omitempty"`
}

// requireHits makes a row without deviations Inconclusive if its rules matched no request and delayed no watch.
func (r row) requireHits(hits int) row {
	if hits == 0 {
		r.Verdict, r.Remark = inconclusive, "the fault affected no request"
	}
	return r
}

// setVerdict sets the verdict of a row with deviations, and of a row that has none.
func (r row) setVerdict() row {
	switch {
	case len(r.Deviations) > 0:
		r.Verdict = failed
	case r.Verdict != "":
	case r.Bound > 0 && r.Recovery > r.Bound:
		r.Verdict = degraded
	default:
		r.Verdict = resilient
	}
	return r
}

// report is the result of a campaign.
type report struct {
	Seed    uint64    `json:"seed"`
	Started time.Time `json:"started"`
	Rows    []row     `json:"rows"`
}

// failures returns the rows that are Degraded or Failed.
func (r report) failures() []row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(one row) bool { return one.Verdict == resilient || one.Verdict == inconclusive })
}

// seconds formats a duration for tables.
func seconds(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

// markdown writes the rows as a table.
func (r report) markdown(out io.Writer) {
	fmt.Fprintln(out, "| Scenario | Fault | Verdict | Recovery time | Bound | Writes | Remark |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, one := range r.Rows {
		remark := one.Remark
		if len(one.Deviations) > 0 {
			remark = strings.TrimPrefix(remark+"; ", "; ") + shorten(one.Deviations, 3)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %d | %s |\n", one.Scenario, cell.Replace(one.Fault), one.Verdict,
			seconds(one.Recovery), seconds(one.Bound), one.Writes, cell.Replace(remark))
	}
}

// shorten joins the first texts, and appends the number of the remaining ones.
func shorten(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}

// save writes the table and JSON to a folder.
func (r report) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder of the report: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "Seed %d, %s.\n\n", r.Seed, r.Started.UTC().Format(time.RFC3339))
	r.markdown(&table)
	fmt.Fprintln(&table)
	injectionTable(&table, r.Rows)
	for name, content := range map[string]string{"chaos.json": string(text) + "\n", "chaos.md": table.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
