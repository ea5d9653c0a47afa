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

// describesCheckout reports whether the names in backquotes on a page refer to this checkout. The other pages, such as decisions, also
// describe the past and other programs.
func describesCheckout(page string) bool {
	for _, prefix := range []string{"docs/decisions/", "docs/behaviours/", "docs/reference/", "docs/upstream-defects.md", "docs/dependencies.md", "CHANGELOG.md"} {
		if strings.HasPrefix(page, prefix) {
			return false
		}
	}
	return true
}

// checkoutSources returns the text of Go files, manifests, scripts and files without an extension, except _test.go files and the folders
// bin, docs and testdata.
func checkoutSources(t *testing.T) string {
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
		if slices.Contains([]string{".go", ".yaml", ".env", ".sh", ".json", ""}, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go") {
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
	span          = regexp.MustCompile("`([^`\n]+)`")
	variable      = regexp.MustCompile(`^([A-Z][A-Z0-9]*_[A-Z0-9_]+)(=.*)?$`)
	makeCommand   = regexp.MustCompile(`^make ([a-z0-9-]+)`)
	pluginCommand = regexp.MustCompile(`^kubectl odh ([a-z]+)`)
	checkoutPath  = regexp.MustCompile(`^(apis|charts|cmd|config|controllers|docs|pkg|test|webhooks)/[A-Za-z0-9_./-]+$`)
)

// foreignVariables are environment variables of other programs that pages name.
var foreignVariables = []string{"MLFLOW_WORKSPACE"}

// The environment variables, make targets, commands of kubectl odh and paths in the text of pages exist.
func TestNamesOnPagesExist(t *testing.T) {
	all, targets := checkoutSources(t), makeTargets(t)
	variables := strings.FieldsFunc(all, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' })
	counted := 0
	for name, page := range pages(t) {
		if !describesCheckout(name) {
			continue
		}
		for _, found := range span.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			word := found[1]
			if v := variable.FindStringSubmatch(word); v != nil {
				counted++
				if !slices.Contains(variables, v[1]) && !slices.Contains(foreignVariables, v[1]) {
					t.Errorf("%s contains the variable %s, which this checkout does not read", name, v[1])
				}
			}
			if m := makeCommand.FindStringSubmatch(word); m != nil {
				counted++
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s contains `make %s`, which is not a target", name, m[1])
				}
			}
			if m := pluginCommand.FindStringSubmatch(word); m != nil {
				counted++
				if use := `Use: "` + m[1]; m[1] != "completion" && !strings.Contains(all, use+`"`) && !strings.Contains(all, use+" ") {
					t.Errorf("%s contains `kubectl odh %s`, which is not a command", name, m[1])
				}
			}
			if checkoutPath.MatchString(word) {
				counted++
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					t.Errorf("%s contains the path %s, which does not exist", name, word)
				}
			}
		}
	}
	if counted < 150 {
		t.Errorf("got %d names, want at least 150: the test does not parse the pages correctly", counted)
	}
}
