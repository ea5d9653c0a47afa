package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// variableParts are the parts of an output that differ between runs, each with a placeholder. Times precede IDs and addresses.
var variableParts = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\x1b\[[0-9;]*m`), ""}, // colors
	{regexp.MustCompile(`\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?( ?UTC|Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<id>"},
	// Suffixes of the names that Kubernetes generates.
	{regexp.MustCompile(`(-[bcdfghjklmnpqrstvwxz2456789]{5,10}){1,2}\b`), "-<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{10,64}\b`), "<id>"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "<address>"},
	{regexp.MustCompile(`\b(\d+[dhms]){1,2}\b`), "<age>"},
	// Ray prints this prefix only if its output is not a terminal.
	{regexp.MustCompile(`^<time> [A-Z]+ \w+\.py:\d+ -- `), ""},
}

// anyLines is a line on a page that matches any number of lines.
const anyLines = "..."

// Similar returns an error if an output differs from the output on a page, except in [variableParts] and white space. A line of three dots
// on the page matches any lines.
func Similar(page, output string) error {
	want, got := normalizedLines(page), normalizedLines(output)
	if matches(want, got) {
		return nil
	}
	return fmt.Errorf("got the output\n%s\nwant output similar to\n%s", output, page)
}

// normalizedLines returns the lines of an output with placeholders for variable parts.
func normalizedLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		for _, v := range variableParts {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == anyLines {
		return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}
