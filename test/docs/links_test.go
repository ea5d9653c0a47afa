package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pages returns all pages of the checkout, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			all[name] = read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("got %d pages, want at least 30", len(all))
	}
	return all
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```[ \t]*$")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// linkTargets returns the targets of the relative links of a page.
func linkTargets(page string) []string {
	var all []string
	for _, found := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(fence.ReplaceAllString(page, ""), ""), -1) {
		if !strings.Contains(found[1], "://") && !strings.HasPrefix(found[1], "mailto:") {
			all = append(all, found[1])
		}
	}
	return all
}

// anchors returns the anchors of the headings of a page.
func anchors(page string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		all = append(all, slug(found[1]))
	}
	return all
}

// slug returns the anchor of a heading: lower-case letters, digits, hyphens and underscores, with hyphens in place of blanks.
func slug(title string) string {
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, strings.TrimSpace(title))
}

// Every relative link points to an existing file or folder, and its anchor to a heading.
func TestLinksHaveTargets(t *testing.T) {
	all := pages(t)
	for name, page := range all {
		for _, target := range linkTargets(page) {
			path, anchor, _ := strings.Cut(target, "#")
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s links to %s, which is not a heading", name, target)
			}
		}
	}
}

// README.md links to every page below docs, directly or through other pages.
func TestEveryPageIsLinked(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{}
	queue := []string{"README.md"}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		for _, target := range linkTargets(all[name]) {
			path, _, _ := strings.Cut(target, "#")
			to := filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			if _, page := all[to]; page && path != "" {
				queue = append(queue, to)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("README.md does not link to %s, directly or through other pages", name)
		}
	}
}

func TestSlug(t *testing.T) {
	for title, want := range map[string]string{
		"How it is built": "how-it-is-built", "`Ready`, twice": "ready-twice", "MLflow v1": "mlflow-v1", "See [x](y.md)": "see-x",
	} {
		if got := slug(title); got != want {
			t.Errorf("%q: got %q, want %q", title, got, want)
		}
	}
	if got := linkTargets("[a](b.md#c) `[d](e)` [f](https://g)\n```\n[h](i)\n```\n"); !slices.Equal(got, []string{"b.md#c"}) {
		t.Errorf("got %v, want %v", got, []string{"b.md#c"})
	}
	if got := anchors("# A b\n```\n# no\n```\n## C\n"); !slices.Equal(got, []string{"a-b", "c"}) {
		t.Errorf("got %v, want %v", got, []string{"a-b", "c"})
	}
}

// Decisions are numbered in order, in their file names, their titles and the list.
func TestDecisionsAreNumbered(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs/decisions/0*.md"))
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	list := read(t, "docs/decisions/README.md")
	for i, path := range paths {
		name := filepath.Base(path)
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("got file name %s, want the prefix %s", name, want)
		}
		title := strings.TrimPrefix(strings.SplitN(read(t, "docs/decisions/"+name), "\n", 2)[0], fmt.Sprintf("# %d. ", i+1))
		title = strings.TrimSpace(dated.ReplaceAllString(title, ""))
		if row := fmt.Sprintf("| [%d](%s) | %s |", i+1, name, title); !strings.Contains(list, row) {
			t.Errorf("docs/decisions/README.md has no row %s", row)
		}
	}
}

var dated = regexp.MustCompile(`\(\d{4}-\d\d-\d\d[^)]*\)$`)
