package rights

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	get  = Use{Verb: "get", Resource: "pods"}
	list = Use{Verb: "list", Resource: "pods"}
)

func TestAddMergesRunsOfSameComponents(t *testing.T) {
	r := &Record{}
	r.Add(Run{Components: []string{"b"}, Used: []Use{list}}, Run{Used: []Use{get}})
	r.Add(Run{Components: []string{"b"}, Used: []Use{get, list}, Refused: []Refusal{{Use: get, Message: "no"}}, Granted: []Use{get}, Bound: []Bound{{Name: "x", Rules: []Use{list}}}})
	want := []Run{{Used: []Use{get}}, {Components: []string{"b"}, Used: []Use{get, list}, Refused: []Refusal{{Use: get, Message: "no"}}, Granted: []Use{get}, Bound: []Bound{{Name: "x", Rules: []Use{list}}}}}
	if difference := cmp.Diff(want, r.Runs); difference != "" {
		t.Error(difference)
	}
}

func write(t *testing.T, dir string, r *Record) {
	t.Helper()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
}

// A record of selected specs is merged into that of the complete suite, which the next complete record replaces.
func TestWriteMergesOrReplacesRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rights")
	if records, err := ReadAll(dir); err != nil || len(records) > 0 {
		t.Errorf("records %v, error %v, want none", records, err)
	}
	write(t, dir, &Record{Suite: "a", Runs: []Run{{Used: []Use{get}}}})
	write(t, dir, &Record{Suite: "b", Complete: true, Runs: []Run{{Used: []Use{get}, Refused: []Refusal{{Use: list, Message: "no"}}}}})
	write(t, dir, &Record{Suite: "b", Runs: []Run{{Used: []Use{list}}}})
	records, err := ReadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Record{{Suite: "a", Runs: []Run{{Used: []Use{get}}}}, {Suite: "b", Complete: true, Runs: []Run{{Used: []Use{get, list}}}}}
	if difference := cmp.Diff(want, records); difference != "" {
		t.Error(difference)
	}
	write(t, dir, &Record{Suite: "b", Complete: true, Runs: []Run{{Used: []Use{list}}}})
	if records, err = ReadAll(dir); err != nil || len(records[1].Runs[0].Used) != 1 {
		t.Errorf("record %v after a complete suite, error %v, want one used permission", records[1], err)
	}
	if rest, err := filepath.Glob(filepath.Join(dir, "*.json.*")); err != nil || len(rest) > 0 {
		t.Errorf("temporary files %v, error %v, want none", rest, err)
	}
}

func TestInvalidRecordsReturnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAll(dir); err == nil {
		t.Error("got no error for an invalid record")
	}
	if err := (&Record{Suite: "a"}).Write(dir); err == nil {
		t.Error("got no error when merging into an invalid record")
	}
	if err := (&Record{Suite: "b"}).Write(filepath.Join(dir, "a.json")); err == nil {
		t.Error("got no error for a file in place of the directory")
	}
}

func TestDir(t *testing.T) {
	t.Setenv(DirVariable, "/somewhere")
	if dir, err := Dir(); err != nil || dir != "/somewhere" {
		t.Errorf("unexpected directory %s, error %v", dir, err)
	}
	t.Setenv(DirVariable, "")
	if dir, err := Dir(); err != nil || filepath.Base(filepath.Dir(dir)) != "bin" {
		t.Errorf("unexpected directory %s, error %v", dir, err)
	}
}

func TestUseString(t *testing.T) {
	for want, use := range map[string]Use{
		"get pods":     {Verb: "get", Resource: "pods"},
		"get /metrics": {Verb: "get", Path: "/metrics"},
		"patch mlflows.g/status m in its own namespace":         {Verb: "patch", Group: "g", Resource: "mlflows/status", Name: "m", Namespace: Own},
		"create routes.route.openshift.io in another namespace": {Verb: "create", Group: "route.openshift.io", Resource: "routes", Namespace: Other},
	} {
		if got := use.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
