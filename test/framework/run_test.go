package framework

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

func TestAttempts(t *testing.T) {
	for _, c := range []struct {
		flag int
		ci   string
		want int
	}{
		{0, "", 0}, {0, "true", 2}, {0, "false", 0}, {3, "true", 3}, {1, "true", 1}, {3, "", 3},
	} {
		if got := attempts(c.flag, c.ci); got != c.want {
			t.Errorf("attempts(%d, %q) = %d, want %d", c.flag, c.ci, got, c.want)
		}
	}
}

func TestFailedAndFlakySpecsGetOneLineEach(t *testing.T) {
	spec := func(text string, state types.SpecState, attempts, maxAttempts int) types.SpecReport {
		return types.SpecReport{
			ContainerHierarchyTexts: []string{"A thing"}, LeafNodeText: text, LeafNodeType: types.NodeTypeIt, State: state,
			NumAttempts: attempts, MaxFlakeAttempts: maxAttempts, RunTime: 61 * time.Second,
		}
	}
	got := failedAndFlakySpecs(ginkgo.Report{SuiteDescription: "Suite", SpecReports: types.SpecReports{
		spec("is steady", types.SpecStatePassed, 1, 2),
		spec("needs a second attempt", types.SpecStatePassed, 2, 2),
		spec("fails", types.SpecStateFailed, 2, 2),
		spec("is repeated on purpose", types.SpecStatePassed, 2, 0),
		{LeafNodeType: types.NodeTypeCleanupAfterSuite, State: types.SpecStateFailed, Failure: types.Failure{Message: "writes that changed nothing:\n  PATCH"}},
	}})
	want := "FLAKED: Suite: A thing needs a second attempt (1m1s, attempt 2)\nFAILED: Suite: A thing fails (1m1s, attempt 2)\n" +
		"FAILED: Suite: DeferCleanup (Suite): writes that changed nothing: PATCH (0s, attempt 0)\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTimingsIncludeExecutedSpecsOnly(t *testing.T) {
	got := timings(ginkgo.Report{SuiteDescription: "Suite", SpecReports: types.SpecReports{
		{ContainerHierarchyTexts: []string{"A thing"}, LeafNodeText: "works", LeafNodeType: types.NodeTypeIt, RunTime: 61500 * time.Millisecond},
		{LeafNodeType: types.NodeTypeBeforeSuite, RunTime: time.Second},
		{LeafNodeText: "is skipped", LeafNodeType: types.NodeTypeIt},
	}})
	if want := "61.5\tSuite\tIt A thing works\n1.0\tSuite\tBeforeSuite \n"; got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}

func TestAppendToKeepsEarlierLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	for _, line := range []string{"one\n", "", "two\n"} {
		if err := appendTo(path, line); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("got %q, error %v, want one and two", got, err)
	}
	if err := appendTo(filepath.Join(path, "nowhere"), "x"); err == nil {
		t.Error("want an error for a file that cannot be written")
	}
}
