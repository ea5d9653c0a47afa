package docs

import (
	"slices"
	"strings"
	"testing"
)

// commandsOf splits a line into commands and their words, like a shell. It omits here-documents.
func commandsOf(line string) [][]string {
	if head, _, found := strings.Cut(line, "<<"); found {
		line, _, _ = strings.Cut(head, "\n")
	}
	var all [][]string
	var current []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	flush := func() {
		if inWord {
			current = append(current, word.String())
		}
		word.Reset()
		inWord = false
	}
	next := func() {
		flush()
		if len(current) > 0 {
			all = append(all, current)
		}
		current = nil
	}
	runes := []rune(strings.ReplaceAll(line, "\\\n", " "))
	for i, r := range runes {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			flush()
		case r == '#' && !inWord && (i == 0 || runes[i-1] == ' '):
			next()
			return all
		case r == '|' || r == ';' || r == '&' || r == '\n':
			next()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	next()
	return all
}

func TestCommandsOf(t *testing.T) {
	for line, want := range map[string][][]string{
		"make a  B=c # why":                      {{"make", "a", "B=c"}},
		"kubectl get x -o 'a b' | diff y - || d": {{"kubectl", "get", "x", "-o", "a b"}, {"diff", "y", "-"}, {"d"}},
		"a \\\n  b; c":                           {{"a", "b"}, {"c"}},
		"kubectl apply -f - <<EOF\na: 'b\nEOF":   {{"kubectl", "apply", "-f", "-"}},
		`x --p='{"a":"b#c"}' ""`:                 {{"x", `--p={"a":"b#c"}`, ""}},
	} {
		got := commandsOf(line)
		if len(got) != len(want) {
			t.Errorf("commandsOf(%q) = %q, want %q", line, got, want)
			continue
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%q: got %q, want %q", line, got[i], want[i])
			}
		}
	}
}

func TestBlocks(t *testing.T) {
	page := "# a\n```sh needs=kind\nmake x \\\n  y\n# no\n\nkubectl apply -f - <<EOF\nkind: A\nEOF\nls\n```\ntext\n```yaml file=a.yaml\nb: c\n```\n```\npicture\n```\n"
	blocks := Blocks(page)
	if len(blocks) != 3 || blocks[0].Value("needs") != "kind" || blocks[1].Value("file") != "a.yaml" || blocks[1].Text != "b: c\n" || blocks[2].Language != "" {
		t.Fatalf("got blocks %+v, want 3 with their attributes", blocks)
	}
	if blocks[0].Line != 2 || blocks[1].Line != 13 || blocks[0].Value("file") != "" {
		t.Errorf("got lines %d and %d, want 2 and 13", blocks[0].Line, blocks[1].Line)
	}
	want := []string{"make x \\\n  y", "kubectl apply -f - <<EOF\nkind: A\nEOF", "ls"}
	if got := blocks[0].Commands(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
