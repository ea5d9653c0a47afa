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

// testSources returns the text of all tests outside this package, and of their test vectors.
func testSources(t *testing.T) string {
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
	postponed = regexp.MustCompile(`\*\([^)]*\)\*$`)
	defect    = regexp.MustCompile(`(?m)^\| ([DMORWS]\d+) \|.*\| ([^|]*) \|$`)
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// behaviourCounts is the number of behaviours on the page of each component.
var behaviourCounts = map[string]int{"mlflow": 99, "appwrapper": 58, "modelmesh": 102, "modelregistry": 132, "raycluster": 33}

// Every behaviour has a test with its tag, unless its page postpones it.
func TestBehavioursHaveTests(t *testing.T) {
	all := testSources(t)
	for component, want := range behaviourCounts {
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
		if postponed.MatchString(row[3]) && (row[2] != "" || !strings.Contains(all, "["+tag+"]")) {
			continue
		}
		if !strings.Contains(all, "["+tag+"]") && !strings.Contains(all, "tag: "+tag+",") {
			t.Errorf("no test has the tag %s: %s", tag, row[3])
		}
	}
	if covered != want {
		t.Errorf("docs/behaviours/%s.md has %d behaviours, want %d", component, covered, want)
	}
}

// Every row of docs/upstream-defects.md, except the headers, has an ID and tests that exist.
func TestDefectsNameTestsThatExist(t *testing.T) {
	all, page := testSources(t), read(t, "docs/upstream-defects.md")
	rows := defect.FindAllStringSubmatch(page, -1)
	if want := strings.Count(page, "\n| ") - strings.Count(page, "\n| ID "); len(rows) != want || want == 0 {
		t.Errorf("got %d rows with an ID and tests, want %d", len(rows), want)
	}
	for _, row := range rows {
		names := quoted.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 {
			t.Errorf("defect %s has no test", row[1])
		}
		for _, name := range names {
			if !strings.Contains(all, name[1]) {
				t.Errorf("defect %s has the test %q, which does not exist", row[1], name[1])
			}
		}
	}
}
