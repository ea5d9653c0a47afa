//go:build operands

package operands

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// check is the argument for a run without changes.
const check = "check"

// The check reports the revision of a database and leaves the database unchanged.
func TestCheckDoesNotModifyDatabase(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	all := stores(t, p, "checked")
	server, file := all[0], all[1]
	expectOutput := func(uri, stdout string) {
		t.Helper()
		got := p.migrate(fromSecret(p, uri, ""), oldest, check)
		if got.code != 0 || got.stdout != stdout {
			t.Errorf("ended with %+v, want\n%s", got, stdout)
		}
		report.add("check, "+strings.TrimSpace(stdout), got.oneLine())
	}
	expectOutput(server.uri, "backend store: at revision None\n")
	if tables := p.python("tables.py", server.uri); tables != "" {
		t.Errorf("the check made %s", tables)
	}
	p.python("schema.py", server.uri, revision3101, "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage) VALUES (7, 'old', '/old', 'active')")
	expectOutput(server.uri, "backend store: at revision "+revision3101+"\n")
	if at := p.python("revision.py", server.uri); at != revision3101 {
		t.Errorf("the database is at %s after the check", at)
	}
	expectOutput(file.uri, "backend store: a file, which is not opened\n")
	if _, err := os.Stat(p.path("checked.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the check made the file: %v", err)
	}
}

// The check reports the errors that would fail a migration, before the server is stopped.
func TestCheckFailures(t *testing.T) {
	t.Parallel()
	newer := stores(t, newPod(t), "checkednewer")[0].uri
	newPod(t).python("schema.py", newer, revisionBefore, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
	const closed = "a database cannot be opened or read: OperationalError"
	for _, c := range []struct {
		name    string
		uri     func(p *pod) string
		version string
		code    int
		message string
	}{
		{"a backend of files", func(*pod) string { return "file:///mlflow/hunter2" }, oldest, 11, "the backend store is none of sqlite, postgresql, mysql"},
		{"a revision that the image does not know", func(*pod) string { return newer }, oldest, 17, unknownRevision("ffffffffffff")},
		{"a server that does not answer", unreachable, oldest, 16, closed + ", refused"},
		{"a password that is wrong", func(*pod) string {
			return strings.Replace(database.URI("postgres", "sslmode=require"), "hunter2", "hunter2x", 1)
		}, oldest, 16, closed + ", login"},
		{"a database that does not exist", func(*pod) string { return database.URI("nowhere", "sslmode=require") }, oldest, 16, closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			got := p.migrate(fromSecret(p, c.uri(p), ""), c.version, check)
			if got.code != c.code || got.termination != c.message {
				t.Errorf("ended with %+v, want %d: %s", got, c.code, c.message)
			}
			report.add("check, "+c.name, got.oneLine())
		})
	}
}
