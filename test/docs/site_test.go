package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listed are pages in the navigation of the site: their paths below docs.
var listed = regexp.MustCompile(`(?m)^ +- (?:[^:\n]+: )?(\S+\.md)$`)

// evidence are pages that the navigation leaves out: results.md has a summary of them and their links.
var evidence = regexp.MustCompile(`^behaviours/|^(upstream-defects|reliability|performance)\.md$`)

// Every page below docs is once in the navigation of the site, in the table of its folder, or evidence; pages for maintainers are separate
// from those for users. `make docs` finds other errors, and requires Python.
func TestNavigationOfTheSite(t *testing.T) {
	config := read(t, "docs/site/mkdocs.yml")
	users, maintainers, found := strings.Cut(config[strings.Index(config, "\nnav:"):], "- Maintainers:")
	if !found {
		t.Fatal("the navigation has no part for maintainers")
	}
	times := map[string]int{}
	for _, entry := range listed.FindAllStringSubmatch(users+maintainers, -1) {
		times["docs/"+entry[1]]++
	}
	for name := range pages(t) {
		page := strings.TrimPrefix(name, "docs/")
		inTable := strings.HasPrefix(page, "decisions/0") || strings.HasPrefix(page, "runbooks/ODH")
		want := 1
		if evidence.MatchString(page) {
			want = 0
			if !slices.Contains(targets(read(t, "docs/results.md")), page) {
				t.Errorf("docs/results.md does not link %s", page)
			}
		}
		if name != page && !inTable && times[name] != want {
			t.Errorf("mkdocs.yml lists %s %d times, want %d", page, times[name], want)
		}
		internal := regexp.MustCompile(`^decisions/|^(dependencies|architecture)\.md$`).MatchString(page)
		if internal && strings.Contains(users, page) {
			t.Errorf("%s is for maintainers, and mkdocs.yml lists it for users", page)
		}
	}
}
