package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is how many words a sentence for users may have.
const longest = 40

// proseRules are words that a page for users does without, with what to write instead.
var proseRules = []struct {
	pattern *regexp.Regexp
	write   string
}{
	{regexp.MustCompile(`(?i)\b(?:please|simply|obviously|of course|easily|very|really|quite|nowadays|currently)\b`), "nothing: leave it out"},
	{regexp.MustCompile(`(?i)(?:\be\.g\.|\bi\.e\.|\betc\.)`), "for example, that is, and others"},
	{regexp.MustCompile(`(?i)\b(?:via|utili[sz]\w*|leverag\w+|perform(?:s|ed|ing)?)\b`), "through or with, use, do or run"},
	{regexp.MustCompile(`(?i)\b(?:in order to|so as to|prior to|as well as|the former|the latter)\b`), "to, before, and, the name again"},
	{regexp.MustCompile(`(?i)\b(?:allow|enable)s? to\b`), "lets you, makes it possible to"},
	{regexp.MustCompile(`(?i)\b\w+n't\b`), "the long form, such as does not"},
	{regexp.MustCompile(`(?i)\b(?:he|she|him|his|her)\b`), "the user, they"},
	{regexp.MustCompile(`(?i)\b(?:white|black)-?list\w*\b`), "allowlist, denylist"},
	{regexp.MustCompile(`(?i)\bbears?\b|\bstands? (?:in (?:a|all|its|code)|before|beside)\b`), "has, is in, exists"},
	{regexp.MustCompile(`(?i)\brights\b(?:[^-.]|$)`), "permissions"},
}

var (
	inner      = regexp.MustCompile(`^docs/(?:behaviours|decisions|reference)/|^docs/(?:upstream-defects|dependencies)\.md$`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	item       = regexp.MustCompile(`^\s*(?:[-*]|\d+\.|#+) `)
	letters    = regexp.MustCompile(`^[a-z]+$`)
	sentence   = regexp.MustCompile(`[.!?:;] +`)
)

// forUsers reports whether a page is written for users; pages for maintainers describe the code in its words.
func forUsers(page string) bool {
	below := strings.HasPrefix(page, "docs/") || slices.Contains([]string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "charts/mlflow/README.md"}, page)
	return below && !inner.MatchString(page)
}

// prose returns the paragraphs, list items, headings and table cells of a page, each in one line. Code is a word.
func prose(page string) []string {
	page = codeSpan.ReplaceAllString(fence.ReplaceAllString(page, "\n\n"), "code")
	page = linkTarget.ReplaceAllString(page, "]")
	var all []string
	var current []string
	flush := func() {
		if len(current) > 0 {
			all = append(all, strings.Join(current, " "))
		}
		current = nil
	}
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			flush()
		case strings.HasPrefix(text, "|"):
			flush()
			for cell := range strings.SplitSeq(strings.Trim(text, "|"), "|") {
				all = append(all, strings.TrimSpace(cell))
			}
		default:
			if item.MatchString(line) {
				flush()
				text = strings.TrimSpace(item.ReplaceAllString(line, ""))
			}
			current = append(current, text)
		}
	}
	flush()
	return all
}

// faults returns what is to be reworded in a piece of prose.
func faults(text string) []string {
	var all []string
	for _, rule := range proseRules {
		if found := rule.pattern.FindString(text); found != "" {
			all = append(all, "instead of "+found+" write "+rule.write)
		}
	}
	words := strings.Fields(strings.ToLower(text))
	for i := 1; i < len(words); i++ {
		if again := strings.TrimRight(words[i], ".,;:!?"); again == words[i-1] && again != "code" && letters.MatchString(again) {
			all = append(all, "the word "+words[i]+" is there twice")
		}
	}
	for _, s := range sentence.Split(text, -1) {
		if n := len(strings.Fields(s)); n > longest {
			all = append(all, "the sentence is too long: "+s)
		}
	}
	return all
}

// Pages for users are plain: short sentences, and no words that add nothing or that few readers know.
func TestProse(t *testing.T) {
	all, read := pages(t), 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !forUsers(name) {
			continue
		}
		for _, text := range prose(all[name]) {
			read++
			for _, fault := range faults(text) {
				t.Errorf("%s: %s\n  %s", name, fault, text)
			}
		}
	}
	if read < 2000 {
		t.Errorf("%d pieces are too few: the pages are read wrongly", read)
	}
}

func TestProseIsPrecise(t *testing.T) {
	for page, want := range map[string]int{
		"Run the the command.":                    1,
		"The last word\nword of a line.":          1,
		"Please run it.":                          1,
		"It doesn't work, e.g. on Windows.":       2,
		"`please` and\n```sh\nplease please\n```": 0,
		"| the | the |":                           0,
		"See [rights](rights.md).":                1,
		"See [rights.md](rights.md). A Service stands in front. A Secret is here.":       0,
		strings.Repeat("word another ", 20) + "end.":                                     1,
		strings.Repeat("word another ", 10) + "; " + strings.Repeat("word another ", 15): 0,
	} {
		got := 0
		for _, text := range prose(page) {
			got += len(faults(text))
		}
		if got != want {
			t.Errorf("%q has %d faults, want %d", page, got, want)
		}
	}
}
