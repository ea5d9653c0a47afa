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
	managerRow = regexp.MustCompile("(?m)^\\| ([a-z]+) \\| ((?:Cluster)?Role) `([^`]+)` \\|")
	userRow    = regexp.MustCompile("(?m)^\\| ((?:Cluster)?Role) `([^`]+)` \\| ([a-z, ]*?) ?\\|")
)

// docs/rights.md lists each role once, with its component or with the roles to which it is aggregated.
func TestRightsPageListsRoles(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs/rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed, want []string
	for _, row := range managerRow.FindAllStringSubmatch(string(content), -1) {
		listed = append(listed, row[1]+" "+row[2]+" "+row[3])
	}
	for _, row := range userRow.FindAllStringSubmatch(string(content), -1) {
		aggregated := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(aggregated)
		listed = append(listed, "user "+row[1]+" "+row[2]+" "+strings.Join(aggregated, " "))
	}
	for _, r := range shipped(t) {
		switch component := r.component(); {
		case !r.boundToManager:
			want = append(want, "user "+r.kind+" "+r.name+" "+strings.Join(r.aggregated, " "))
		case component == "":
			want = append(want, "all "+r.kind+" "+r.name)
		default:
			want = append(want, component+" "+r.kind+" "+r.name)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	for _, row := range want {
		if !slices.Contains(listed, row) {
			t.Errorf("docs/rights.md does not list %s", row)
		}
	}
	for i, row := range listed {
		if !slices.Contains(want, row) || i > 0 && listed[i-1] == row {
			t.Errorf("docs/rights.md lists a role twice or one that does not exist: %s", row)
		}
	}
}
