package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// cells returns the rows of the tables of a page, by their first cell.
func cells(page string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, " |") {
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		all[row[0]] = row
	}
	return all
}

// docs/results.md has the figures of docs/reliability.md, docs/performance.md, docs/behaviours and docs/upstream-defects.md.
// docs/production.md has those of docs/performance.md about a restart.
func TestResultsMatchEvidence(t *testing.T) {
	results, reliability, performance := read(t, "docs/results.md"), read(t, "docs/reliability.md"), read(t, "docs/performance.md")
	campaign, figures := cells(reliability), cells(performance)
	compared := 0
	for name, row := range cells(results) {
		if figure, found := figures[name]; found && len(row) == 3 {
			compared++
			if strings.Join(row[1:], "|") != strings.Join(figure[1:3], "|") {
				t.Errorf("docs/results.md has %v, but docs/performance.md has %v", row, figure)
			}
		}
		if len(row) == 3 && strings.HasPrefix(row[2], "`") {
			compared++
			scenario := campaign[strings.Trim(row[2], "`")]
			if len(scenario) < 4 || scenario[2] != "Resilient" || scenario[3] != row[1] {
				t.Errorf("docs/results.md has %v, but docs/reliability.md has %v", row, scenario)
			}
		}
	}
	if compared < 12 {
		t.Errorf("compared %d rows, want at least 12: the test does not parse the tables correctly", compared)
	}
	rounds := strings.Fields(campaign["random"][1])[0]
	resilient, total := 0, 0
	for name, row := range campaign {
		if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(name) || len(row) < 6 {
			continue
		}
		total++
		if row[2] == "Resilient" {
			resilient++
		}
	}
	behaviours := 0
	for _, number := range behaviourCounts {
		behaviours += number
	}
	sizing := fmt.Sprintf("the manager uses %s after a restart, which takes %s and", figures["Resident memory after a restart"][1], figures["Restart"][1])
	if !strings.Contains(read(t, "docs/production.md"), sizing) {
		t.Errorf("docs/production.md does not contain %q", sizing)
	}
	for _, want := range []string{
		fmt.Sprintf("Of %d scenarios, %d recovered", total, resilient),
		rounds + " rounds of random",
		fmt.Sprintf("| %d behaviours with", behaviours),
		fmt.Sprintf("[%d rows, each with its test]", len(defect.FindAllString(read(t, "docs/upstream-defects.md"), -1))),
	} {
		if !strings.Contains(results, want) {
			t.Errorf("docs/results.md does not contain %q", want)
		}
	}
}
