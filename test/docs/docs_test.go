// Package docs holds the documentation against the code: what a page names must exist.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// tests returns the text of all tests and their vectors, with a space between files.
func tests(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(path, "/test/docs/") {
			return err
		}
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "testdata/admission.yaml") {
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

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	behaviour = regexp.MustCompile(`(?m)^\| (\d+)(?:–(\d+))? \| (.*) \|$`)
	put       = regexp.MustCompile(`\*\([^)]*\)\*$`)
	defect    = regexp.MustCompile(`(?m)^\| ([DMORWS]\d+) \|.*\| ([^|]*) \|$`)
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// behavioursOf are the numbers of behaviours on the pages of the components.
var behavioursOf = map[string]int{"mlflow": 99, "appwrapper": 58, "modelmesh": 102, "modelregistry": 132, "raycluster": 33}

// Every behaviour that its page does not postpone has a test with its tag.
func TestBehavioursHaveTests(t *testing.T) {
	all := tests(t)
	for component, want := range behavioursOf {
		t.Run(component, func(t *testing.T) { checkBehaviours(t, all, component, want) })
	}
}

func checkBehaviours(t *testing.T, all, component string, want int) {
	rows := behaviour.FindAllStringSubmatch(read(t, "docs/behaviours/"+component+".md"), -1)
	covered := 0
	for _, row := range rows {
		first, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		last, err := strconv.Atoi(row[2])
		if err != nil {
			last = first
		}
		covered += last - first + 1
		tag := component + "-" + row[1]
		if row[2] != "" || put.MatchString(row[3]) && !strings.Contains(all, "["+tag+"]") {
			continue
		}
		if !strings.Contains(all, "["+tag+"]") && !strings.Contains(all, "tag: "+tag+",") {
			t.Errorf("no test is tagged %s: %s", tag, row[3])
		}
	}
	if covered != want {
		t.Errorf("the page has %d behaviours of %s, want %d", covered, component, want)
	}
}

// Every test that the page of defects names exists.
func TestDefectsNameTestsThatExist(t *testing.T) {
	all := tests(t)
	rows := defect.FindAllStringSubmatch(read(t, "docs/upstream-defects.md"), -1)
	if len(rows) < 14 {
		t.Fatalf("%d rows, want one per mended defect", len(rows))
	}
	for _, row := range rows {
		names := quoted.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", row[1])
		}
		for _, name := range names {
			if !strings.Contains(all, name[1]) {
				t.Errorf("%s names the test %q, which does not exist", row[1], name[1])
			}
		}
	}
}
