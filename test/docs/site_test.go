package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listed matches the pages in the navigation of the site, by their paths below docs.
var listed = regexp.MustCompile(`(?m)^ +- (?:[^:\n]+: )?(\S+\.md)$`)

// evidence matches pages that the navigation omits. docs/results.md summarizes them and links to them.
var evidence = regexp.MustCompile(`^behaviours/|^(upstream-defects|reliability|performance)\.md$`)

// Every page below docs is exactly once in the navigation of the site, unless it is in the table of its folder or is evidence. Pages for
// maintainers are separate from pages for users. `make docs` reports other errors, and requires Python.
func TestNavigationListsPages(t *testing.T) {
	config := read(t, "docs/site/mkdocs.yml")
	users, maintainers, found := strings.Cut(config[strings.Index(config, "\nnav:"):], "- Maintainers:")
	if !found {
		t.Fatal("mkdocs.yml has no section Maintainers")
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
			if !slices.Contains(linkTargets(read(t, "docs/results.md")), page) {
				t.Errorf("docs/results.md does not link to %s", page)
			}
		}
		if name != page && !inTable && times[name] != want {
			t.Errorf("mkdocs.yml lists %s %d times, want %d", page, times[name], want)
		}
		internal := regexp.MustCompile(`^decisions/|^(dependencies|architecture)\.md$`).MatchString(page)
		if internal && strings.Contains(users, page) {
			t.Errorf("%s is for maintainers, but mkdocs.yml lists it for users", page)
		}
	}
}
