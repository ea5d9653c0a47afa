//go:build operands

package operands

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// checkArgument makes the migration program only check the database.
const checkArgument = "check"

// TestCheckDoesNotModifyDatabase expects that the check reports the revision of a database and does not change the database.
func TestCheckDoesNotModifyDatabase(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	databases := stores(t, p, "checked")
	server, file := databases[0], databases[1]
	expectOutput := func(uri, stdout string) {
		t.Helper()
		got := p.migrate(fromSecret(p, uri, ""), oldest, checkArgument)
		if got.code != 0 || got.stdout != stdout {
			t.Errorf("result %+v, want\n%s", got, stdout)
		}
		report.add("check, "+strings.TrimSpace(stdout), got.oneLine())
	}
	expectOutput(server.uri, "backend store: at revision None\n")
	if tables := p.python("tables.py", server.uri); tables != "" {
		t.Errorf("the check created the tables %s", tables)
	}
	p.python("schema.py", server.uri, revision3101, "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage) VALUES (7, 'old', '/old', 'active')")
	expectOutput(server.uri, "backend store: at revision "+revision3101+"\n")
	if revision := p.python("revision.py", server.uri); revision != revision3101 {
		t.Errorf("revision %s after the check, want %s", revision, revision3101)
	}
	expectOutput(file.uri, "backend store: a file, which is not opened\n")
	if _, err := os.Stat(p.path("checked.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the check created the file: %v", err)
	}
}

// TestCheckFailures tests checks that fail because of the store. The operator runs the check while the server runs, so such an error does
// not stop the server.
func TestCheckFailures(t *testing.T) {
	t.Parallel()
	newerURI := stores(t, newPod(t), "checkednewer")[0].uri
	newPod(t).python("schema.py", newerURI, revisionBefore, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
	const notReadable = "a database cannot be opened or read: OperationalError"
	for _, test := range []struct {
		name    string
		uri     func(p *pod) string
		version string
		code    int
		message string
	}{
		{"a backend of files", func(*pod) string { return "file:///mlflow/hunter2" }, oldest, 11, "the backend store is none of sqlite, postgresql, mysql"},
		{"an unknown revision", func(*pod) string { return newerURI }, oldest, 17, unknownRevision("ffffffffffff")},
		{"an unreachable server", unreachable, oldest, 16, notReadable + ", refused"},
		{"a wrong password", func(*pod) string {
			return strings.Replace(database.URI("postgres", "sslmode=require"), "hunter2", "hunter2x", 1)
		}, oldest, 16, notReadable + ", login"},
		{"a missing database", func(*pod) string { return database.URI("nowhere", "sslmode=require") }, oldest, 16, notReadable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			got := p.migrate(fromSecret(p, test.uri(p), ""), test.version, checkArgument)
			if got.code != test.code || got.termination != test.message {
				t.Errorf("result %+v, want %d: %s", got, test.code, test.message)
			}
			report.add("check, "+test.name, got.oneLine())
		})
	}
}
