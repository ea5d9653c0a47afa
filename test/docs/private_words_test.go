package docs

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// privateWord is an expression that readers from elsewhere do not know, or that hides who acts.
type privateWord struct {
	// hint is what every match holds, in lower case: expressions are slow, and are tried around it only.
	hint string
	// pattern ignores case; a space matches any white space, and also the end of a line of comment.
	pattern string
	// camel is the same inside identifiers, where case separates the words.
	camel string
	// fine are matches that are plain English; the pattern covers more of the text than the match.
	fine  string
	write string
}

var privateWords = []privateWord{
	{
		hint: "pass",
		pattern: `\b(?:a|the|this|one|each|every|next|first|last|whole|same|another|no) pass\b|` +
			`\b(?:two|three|few|many|several|further|later|earlier|more|most|next|first|these|those|between|runs|all|of) passes\b`,
		camel: `\bpass(?:es)?[A-Z]|(?:One|First|Next|Every|Each|Last|Whole|Same|Another|The|Two|No|Empty|Quiet)Pass(?:es)?(?:[A-Z]|\b)|\bTestPass(?:es)?[A-Z]`,
		fine:  `passT(?:hrough|o)\b|passOn|perPass`,
		write: "reconcile, or name what runs (garbage collection, archival)",
	},
	{hint: "told", pattern: `\btold\b`, write: "reported, logged, shown in the status"},
	{hint: "anew", pattern: `\banew\b`, camel: `[a-z]Anew(?:[A-Z]|\b)`, write: "again, recreated"},
	{hint: "stand", pattern: `\bstands? in for\b`, write: "is a placeholder for, is a fake of"},
	{hint: "stand", pattern: `\bstand-ins?\b`, camel: `\bstandIns?(?:[A-Z]|\b)|[a-z]StandIns?(?:[A-Z]|\b)|\bStandIns?(?:[A-Z]|\b)`, write: "fake, placeholder"},
	{hint: "looked", pattern: `\b(?:is|are) looked at\b`, camel: `(?:Is|Are)LookedAt`, write: "is checked, is read"},
	{hint: "cure", pattern: `\bcure[sd]?\b`, camel: `[a-z]Cure[sd]?(?:[A-Z]|\b)`, fine: "`cure`", write: "fix, remedy"},
	{
		hint:    "body",
		pattern: `\b(?-i:[Ss]omebody|[Aa]nybody|[Nn]obody|[Ee]verybody)\b`, camel: `[a-z](?:Somebody|Anybody|Nobody|Everybody)|\b(?:somebody|anybody|nobody|everybody)[A-Z]`,
		fine:  `nobody:|"nobody"|/nobody|user nobody`,
		write: "the actor: a user, another controller, another client, no client; or the passive",
	},
	{hint: "whoever", pattern: `\bwhoever\b`, camel: `[a-z]Whoever|\bwhoever[A-Z]`, write: "the user, the author, the client who"},
	{hint: "others", pattern: `\bof others\b`, camel: `OfOthers|\bofOthers`, fine: `because of others`, write: "foreign, owned by others"},
	{hint: "sa", pattern: `\b(?:is|are) said\b|\bsays so\b`, write: "is reported, the message states"},
	{hint: "asked", pattern: `\b(?:is|are) asked\b`, camel: `(?:Is|Are)Asked`, write: "is called, is queried, is requested"},
	{hint: "go", pattern: `\bgo(?:es)? on\b`, camel: `Go(?:es)?On(?:[A-Z]|\b)`, write: "continues"},
	{hint: "to", pattern: `\b(?:is|are) to be had\b`, write: "is available"},
}

// finder finds one privateWord.
type finder struct {
	privateWord
	find []*regexp.Regexp
	fine *regexp.Regexp
}

func newFinders() []finder {
	var all []finder
	for _, word := range privateWords {
		f := finder{privateWord: word, fine: regexp.MustCompile(`(?i)` + cmp.Or(word.fine, `a^`))}
		f.find = append(f.find, regexp.MustCompile("(?i)"+strings.ReplaceAll(word.pattern, " ", `(?:\s+(?:(?://|#)\s*)?)`)))
		if word.camel != "" {
			f.find = append(f.find, regexp.MustCompile(word.camel))
		}
		all = append(all, f)
	}
	return all
}

// around is how far from its hint a match may reach.
const around = 32

// matches returns the offsets of what is to be reworded in a text, of which lower is the same in lower case.
func (f finder) matches(text, lower string) []int {
	var all []int
	for from := 0; ; {
		next := strings.Index(lower[from:], f.hint)
		if next < 0 {
			return slices.Compact(all)
		}
		hint := from + next
		from = hint + len(f.hint)
		start, end := max(0, hint-around), min(len(text), from+around)
		for _, expression := range f.find {
			for _, at := range expression.FindAllStringIndex(text[start:end], -1) {
				first, last := start+at[0], start+at[1]
				if first <= hint && from <= last && !f.fine.MatchString(text[max(0, first-8):min(len(text), last+8)]) {
					all = append(all, first)
				}
			}
		}
	}
}

// generated are files that are written from sources that are read themselves.
var generated = regexp.MustCompile(`(^|/)zz_generated[^/]*$|^config/crd/bases/|^config/dashboards/(console/console|grafana)\.yaml$`)

// worded reports whether a file is read: code and pages everywhere, and what is deployed, with its comments, scripts and help texts.
func worded(page string) bool {
	switch ext := filepath.Ext(page); {
	case generated.MatchString(page), page == "test/docs/private_words_test.go", ext == ".svg":
		return false
	case ext == ".go", ext == ".md", page == "Makefile":
		return true
	}
	return strings.HasPrefix(page, "config/") || strings.HasPrefix(page, "charts/")
}

// Code, comments, tests and pages are written in words that the reader knows; terms of our own are in the glossary of CONTRIBUTING.md.
func TestPrivateWords(t *testing.T) {
	read, finders := 0, newFinders()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "testdata"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		page, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		page = filepath.ToSlash(page)
		if !worded(page) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		text := string(content)
		lower := strings.ToLower(text)
		if len(lower) != len(text) {
			lower = text // a letter of another length: names of words are lower case nearly everywhere
		}
		for _, word := range finders {
			for _, at := range word.matches(text, lower) {
				start := strings.LastIndexByte(text[:at], '\n') + 1
				line, _, _ := strings.Cut(text[start:], "\n")
				t.Errorf("%s:%d: write %s: %s", page, strings.Count(text[:at], "\n")+1, word.write, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 800 {
		t.Errorf("%d files are too few: the checkout is read wrongly", read)
	}
}

// What is deployed is read, but not what is generated from it.
func TestFilesWithPrivateWords(t *testing.T) {
	for page, want := range map[string]bool{
		"Makefile": true, "config/manage": true, "config/etcd/scripts/enable-auth.sh": true, "config/dashboards/source/manager.yaml": true,
		"config/dashboards/dashboards.jsonnet": true, "charts/mlflow/templates/NOTES.txt": true, "controllers/mlflow/route.go": true,
		"config/crd/bases/a.yaml": false, "config/dashboards/grafana.yaml": false, "bundle/manifests/a.yaml": false,
		"apis/mlflow/v1/zz_generated.deepcopy.go": false, "test/cluster/stages.yaml": false,
	} {
		if worded(page) != want {
			t.Errorf("%s is read: %t, want %t", page, !want, want)
		}
	}
}

// What is plain English passes, and a private word is found inside a name and over the end of a line.
func TestPrivateWordsArePrecise(t *testing.T) {
	for text, want := range map[string]int{
		"objects that pass the check":              0,
		"the request passes to the next filter":    0,
		"every\n\t// pass writes":                  1,
		"func TestOnePassMakesAll()":               1,
		"passwordSecret, passThrough, bypass":      0,
		"what stands in the way":                   0,
		"a Secret stands in for the database":      1,
		"secured and procured":                     0,
		"TestNothingOfOthersIsTouched":             1,
		"the objects\n// of others stay":           1,
		"# the objects\n# of others stay":          1,
		"http.NoBody, because of others":           0,
		"an event is named; the message says what": 0,
	} {
		got := 0
		for _, word := range newFinders() {
			got += len(word.matches(text, strings.ToLower(text)))
		}
		if got != want {
			t.Errorf("%q has %d private words, want %d", text, got, want)
		}
	}
}
