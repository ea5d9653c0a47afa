package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// describesCheckout reports whether the words in backquotes on a page refer to this checkout. Decisions and tables of
// behaviours also describe the past and other programs.
func describesCheckout(page string) bool {
	for _, prefix := range []string{"docs/decisions/", "docs/behaviours/", "docs/reference/", "docs/upstream-defects.md", "docs/dependencies.md", "CHANGELOG.md"} {
		if strings.HasPrefix(page, prefix) {
			return false
		}
	}
	return true
}

// sources returns the text of all files other than pages and tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "testdata", "docs"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		ending := filepath.Ext(path)
		if slices.Contains([]string{".go", ".yaml", ".env", ".sh", ".json", ""}, ending) && !strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

var (
	span     = regexp.MustCompile("`([^`\n]+)`")
	variable = regexp.MustCompile(`^([A-Z][A-Z0-9]*_[A-Z0-9_]+)(=.*)?$`)
	target   = regexp.MustCompile(`^make ([a-z0-9-]+)`)
	plugged  = regexp.MustCompile(`^kubectl odh ([a-z]+)`)
	place    = regexp.MustCompile(`^(apis|charts|cmd|config|controllers|docs|pkg|test|webhooks)/[A-Za-z0-9_./-]+$`)
)

// foreignVariables are variables on pages that other programs set and nothing here reads.
var foreignVariables = []string{"OPERATOR_CONDITION_NAME"}

// Variables, targets, commands of kubectl odh and paths that pages name in passing exist.
func TestWordsOfPagesExist(t *testing.T) {
	all, targets := sources(t), makeTargets(t)
	counted := 0
	for name, page := range pages(t) {
		if !describesCheckout(name) {
			continue
		}
		for _, found := range span.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			word := found[1]
			if v := variable.FindStringSubmatch(word); v != nil {
				counted++
				if !strings.Contains(all, v[1]) && !slices.Contains(foreignVariables, v[1]) {
					t.Errorf("%s names the variable %s, which nothing reads", name, v[1])
				}
			}
			if m := target.FindStringSubmatch(word); m != nil {
				counted++
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s names `make %s`, which is no target", name, m[1])
				}
			}
			if m := plugged.FindStringSubmatch(word); m != nil {
				counted++
				if m[1] != "completion" && !strings.Contains(all, `Use: "`+m[1]) {
					t.Errorf("%s names `kubectl odh %s`, which is no command", name, m[1])
				}
			}
			if place.MatchString(word) {
				counted++
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					t.Errorf("%s names %s, which does not exist", name, word)
				}
			}
		}
	}
	if counted < 150 {
		t.Errorf("%d words are too few: the pages are read wrongly", counted)
	}
}
