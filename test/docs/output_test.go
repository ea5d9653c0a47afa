package docs

import (
	"strings"
	"testing"
)

func TestSimilar(t *testing.T) {
	for name, c := range map[string]struct {
		page, output string
		want         bool
	}{
		"equal output":        {"a b\n", "a b\n", true},
		"empty outputs":       {"", "\n", true},
		"different word":      {"a b\n", "a c\n", false},
		"different number":    {"accuracy 0.98", "accuracy 0.97", false},
		"columns":             {"NAME   READY\nx      True\n", "NAME READY\n\nx  True", true},
		"age":                 {"x Running 42s", "x Running 5m3s", true},
		"missing age":         {"x Running 42s", "x Running", false},
		"time":                {"2026-11-29T10:00:00Z done", "2027-01-02T03:04:05Z done", true},
		"time of a log":       {"2026/11/29 10:00:00 INFO", "2027/01/02 03:04:05 INFO", true},
		"pod name":            {"pod/demo-7d4b9c6f5-x2v4z Running", "pod/demo-59bcf8d6d7-qwxrt Running", true},
		"other Deployment":    {"pod/demo-7d4b9c6f5-x2v4z Running", "pod/other-59bcf8d6d7-qwxrt Running", false},
		"ID":                  {"run 0123456789abcdef0123456789abcdef", "run ffffffff0123456789abcdefffffffff", true},
		"ID and word":         {"run 0123456789abcdef0123456789abcdef", "run failed", false},
		"UUID":                {"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000", true},
		"any lines":           {"a\n...\nd\n", "a\nb\nc\nd\n", true},
		"no lines":            {"a\n...\nd\n", "a\nd\n", true},
		"lines after the end": {"a\n", "a\nb\n", false},
		"missing line":        {"...\nb\n", "a\n", false},
		"any lines at end":    {"a\n...\n", "a\nb\n", true},
		"prefix of Ray":       {"Job pi succeeded", "2026-11-29 21:59:33,532\tSUCC cli.py:66 -- \x1b[32mJob pi succeeded\x1b[39m", true},
	} {
		err := Similar(c.page, c.output)
		if (err == nil) != c.want {
			t.Errorf("%s: got error %v, want similar: %t", name, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), strings.TrimSpace(c.output)) {
			t.Errorf("%s: got error %v, want the output in it", name, err)
		}
	}
}

func TestOutputFollows(t *testing.T) {
	blocks := Blocks("```sh\na\n```\n\n" + OutputFollows + "\n\n```text\nb\n```\n\n```text\nc\n```\n")
	if len(blocks) != 3 || blocks[0].IsOutput() || !blocks[1].IsOutput() || blocks[2].IsOutput() {
		t.Errorf("got blocks %+v, want 3, the second the output of the first", blocks)
	}
}

// Tutorials show the output of every command that prints something, except in blocks with a requirement.
func TestTutorialsShowOutputs(t *testing.T) {
	silent := func(command string) bool {
		return strings.HasPrefix(command, "export ") || strings.HasPrefix(command, "mkdir ") || written.MatchString(command)
	}
	found := 0
	for name, page := range pages(t) {
		if !strings.HasPrefix(name, "docs/tutorials/") || strings.HasSuffix(name, "/README.md") {
			continue
		}
		found++
		if !strings.Contains(page, "\n## Before you begin\n") || !strings.Contains(page, "\n## Clean up\n") {
			t.Errorf("%s lacks the section Before you begin or Clean up", name)
		}
		blocks := Blocks(page)
		for i, b := range blocks {
			shown := i+1 < len(blocks) && blocks[i+1].IsOutput()
			if b.Language == "sh" && b.Value("needs") == "" && !shown && !allOf(b.Commands(), silent) {
				t.Errorf("%s:%d: the output of the commands is missing", name, b.Line)
			}
		}
	}
	if found == 0 {
		t.Error("got no tutorials")
	}
}

func allOf(commands []string, is func(string) bool) bool {
	for _, command := range commands {
		if !is(command) {
			return false
		}
	}
	return true
}
