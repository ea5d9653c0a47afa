package rbac

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	ofManager = regexp.MustCompile("(?m)^\\| ([a-z]+) \\| ((?:Cluster)?Role) `([^`]+)` \\|")
	ofPeople  = regexp.MustCompile("(?m)^\\| ((?:Cluster)?Role) `([^`]+)` \\| ([a-z, ]*?) ?\\|")
)

// The page names each role once, with its component or with the roles that it is aggregated to.
func TestRightsPage(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs/rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	var reported, want []string
	for _, row := range ofManager.FindAllStringSubmatch(string(content), -1) {
		reported = append(reported, row[1]+" "+row[2]+" "+row[3])
	}
	for _, row := range ofPeople.FindAllStringSubmatch(string(content), -1) {
		into := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(into)
		reported = append(reported, "people "+row[1]+" "+row[2]+" "+strings.Join(into, " "))
	}
	for _, r := range shipped(t) {
		switch component := r.component(); {
		case !r.manager:
			want = append(want, "people "+r.kind+" "+r.name+" "+strings.Join(r.aggregated, " "))
		case component == "":
			want = append(want, "all "+r.kind+" "+r.name)
		default:
			want = append(want, component+" "+r.kind+" "+r.name)
		}
	}
	slices.Sort(reported)
	slices.Sort(want)
	for _, row := range want {
		if !slices.Contains(reported, row) {
			t.Errorf("docs/rights.md does not say: %s", row)
		}
	}
	for i, row := range reported {
		if !slices.Contains(want, row) || i > 0 && reported[i-1] == row {
			t.Errorf("docs/rights.md lists a permission that is not granted: %s", row)
		}
	}
}
