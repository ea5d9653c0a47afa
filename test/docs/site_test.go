package docs

import (
	"regexp"
	"strings"
	"testing"
)

// listed are pages in the navigation of the site: their paths below docs.
var listed = regexp.MustCompile(`(?m)^ +- (?:[^:\n]+: )?(\S+\.md)$`)

// Every page below docs is once in the navigation of the site, or in the table of its folder; pages for maintainers are separate from
// those for users. `make docs` finds other errors, and requires Python.
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
		if name != page && !inTable && times[name] != 1 {
			t.Errorf("mkdocs.yml lists %s %d times, want once", page, times[name])
		}
		internal := regexp.MustCompile(`^(behaviours|decisions)/|^(upstream-defects|dependencies|architecture)\.md$`).MatchString(page)
		if internal && strings.Contains(users, page) {
			t.Errorf("%s is for maintainers, and mkdocs.yml lists it for users", page)
		}
	}
}
