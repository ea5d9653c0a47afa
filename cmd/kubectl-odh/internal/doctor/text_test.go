package doctor

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// counted are numbers of things that are shipped, which grow without this text changing.
var counted = regexp.MustCompile(`\d+( roles| webhooks| CRDs)`)

// golden compares a text with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = counted.ReplaceAllString(got, "N$1")
	file := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to create it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-file +got), run with -update if that is meant:\n%s", name, diff)
	}
}

var _ = flag.Bool("update", false, "write the golden files")

// sick is an installation with one fault of each result.
func sick(t *testing.T) *Facts {
	f := healthy(t)
	f.Manager.Others = []string{"other"}
	f.Originals = []Running{{Original: formerOperators[1], Namespace: "old", Present: true, Replicas: 1}}
	f.CRDs["mlflowconfigs.mlflow.kubeflow.org"].Status.Conditions = nil
	f.Manager.Settings.Config.Notices = []string{"two\nlines \x1b[31m", "another"}
	f.Unread[rights] = []Finding{
		{Result: Unknown, Subject: "clusterroles a", Found: "may not be read", Fix: "ask"}, {Result: Unknown, Subject: "clusterroles b", Found: "may not be read", Fix: "ask"},
	}
	return f
}

func TestText(t *testing.T) {
	well, ill := newReport(judge(healthy(t), ships(t))), newReport(judge(sick(t), ships(t)))
	golden(t, "healthy.txt", well.render(screen.Style{}))
	golden(t, "sick.txt", ill.render(screen.Style{}))
	colored := ill.render(screen.Style{Color: true})
	if !strings.Contains(colored, "\x1b[31mfail   \x1b[0m") || strings.Contains(colored, "two\n") {
		t.Errorf("%q", colored)
	}
	for line := range strings.SplitSeq(well.render(screen.Style{Width: 60}), "\n") {
		if screen.Columns(line) > 60 {
			t.Errorf("too long: %q", line)
		}
	}
}

func TestJSON(t *testing.T) {
	report := newReport(judge(sick(t), ships(t)))
	bad := slices.DeleteFunc(slices.Clone(report.Findings), func(f Finding) bool { return f.Result == OK })
	text, err := json.MarshalIndent(bad, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sick.json", string(text)+"\n")
	if report.OK || report.Summary[Fail] != 3 || report.Summary[Warn] != 2 || report.Summary[Unknown] != 2 {
		t.Errorf("%+v", report.Summary)
	}
}
