package framework

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// auditLine returns one audit event.
func auditLine(stage, verb, user, uri, ref, code, rest string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"` + stage + `","verb":"` + verb + `","requestURI":"` + uri +
		`","user":{"username":"` + user + `"},"objectRef":` + ref + `,"responseStatus":{"code":` + code + `}` + rest + "}\n"
}

const (
	configMap = `{"resource":"configmaps","namespace":"ns","name":"a","apiVersion":"v1"}`
	bodies    = `,"requestObject":{"data":{"k":"v"}},"responseObject":{"metadata":{"uid":"u1","resourceVersion":"7","name":"a"}}`
)

func TestParseAudit(t *testing.T) {
	cases := map[string]struct {
		log  string
		want Entries
	}{
		"empty log":   {"", nil},
		"empty lines": {"\n\n", nil},
		"write": {
			auditLine("ResponseComplete", "patch", "ann", "/api/v1/namespaces/ns/configmaps/a", configMap, "200", bodies),
			Entries{{
				Verb: "patch", User: "ann", URI: "/api/v1/namespaces/ns/configmaps/a", Resource: "configmaps", Namespace: "ns", Name: "a",
				Code: 200, UID: "u1", ResourceVersion: "7", Request: []byte(`{"data":{"k":"v"}}`),
			}},
		},
		"generated name": {
			auditLine("ResponseComplete", "create", "ann", "/x", `{"resource":"configmaps","namespace":"ns"}`, "201", bodies),
			Entries{{
				Verb: "create", User: "ann", URI: "/x", Resource: "configmaps", Namespace: "ns", Name: "a",
				Code: 201, UID: "u1", ResourceVersion: "7", Request: []byte(`{"data":{"k":"v"}}`),
			}},
		},
		"dry run by parameter": {
			auditLine("ResponseComplete", "create", "ann", "/x?dryRun=All", `{"resource":"leases","apiGroup":"coordination.k8s.io"}`, "201", ""),
			Entries{{Verb: "create", User: "ann", URI: "/x?dryRun=All", Group: "coordination.k8s.io", Resource: "leases", Code: 201, DryRun: true}},
		},
		"dry run in the body": {
			auditLine("ResponseComplete", "delete", "ann", "/x", configMap, "200", `,"requestObject":{"dryRun":["All"]}`),
			Entries{{
				Verb: "delete", User: "ann", URI: "/x", Resource: "configmaps", Namespace: "ns", Name: "a", Code: 200, DryRun: true,
				Request: []byte(`{"dryRun":["All"]}`),
			}},
		},
		"watch counts once": {
			auditLine("ResponseStarted", "watch", "ann", "/w", `{"resource":"pods"}`, "200", "") +
				auditLine("ResponseComplete", "watch", "ann", "/w", `{"resource":"pods"}`, "200", ""),
			Entries{{Verb: "watch", User: "ann", URI: "/w", Resource: "pods", Code: 200}},
		},
		"failed watch": {
			auditLine("ResponseComplete", "watch", "ann", "/w", `{"resource":"pods"}`, "403", ""),
			Entries{{Verb: "watch", User: "ann", URI: "/w", Resource: "pods", Code: 403}},
		},
		"other stages": {auditLine("Panic", "get", "ann", "/x", configMap, "500", "") + auditLine("ResponseStarted", "get", "ann", "/x", configMap, "200", ""), nil},
		"incomplete last line": {
			auditLine("ResponseComplete", "get", "ann", "/x", configMap, "200", "") + `{"kind":"Ev`,
			Entries{{Verb: "get", User: "ann", URI: "/x", Resource: "configmaps", Namespace: "ns", Name: "a", Code: 200}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseAudit(strings.NewReader(c.log))
			if difference := cmp.Diff(c.want, got); err != nil || difference != "" {
				t.Errorf("unexpected error %v or result (-want +got):\n%s", err, difference)
			}
		})
	}
	if _, err := parseAudit(strings.NewReader("no JSON\n")); err == nil {
		t.Error("want an error for invalid JSON")
	}
}

func FuzzParseAudit(f *testing.F) {
	f.Add(auditLine("ResponseComplete", "patch", "ann", "/x", configMap, "200", bodies))
	f.Add("{}\n{")
	f.Fuzz(func(_ *testing.T, log string) {
		_, _ = parseAudit(strings.NewReader(log)) // must not panic
	})
}

func TestEntriesAreFiltered(t *testing.T) {
	entries := Entries{
		{Verb: "create", User: "ann", Resource: "configmaps"},
		{Verb: "update", User: "bob", Resource: "leases"},
		{Verb: "patch", User: "ann", Resource: "events"},
		{Verb: "get", User: "ann", Resource: "configmaps"},
		{Verb: "list", User: "ann", Resource: "pods"},
		{Verb: "watch", User: "ann", Resource: "pods"},
		{Verb: "get", User: "ann"},
		{Verb: "create", User: "ann", Resource: "subjectaccessreviews"},
		{Verb: "create", User: "ann", Resource: "tokenreviews"},
		{Verb: "deletecollection", User: "ann", Resource: "pods"},
		{Verb: "delete", User: "ann", Resource: "pods", Code: 401},
		{Verb: "delete", User: "bob", Resource: "pods", Code: 403, Message: "pods is forbidden"},
		{Verb: "create", User: "bob", Resource: "pods", Code: 403, Message: "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for"},
	}
	for name, c := range map[string]struct {
		got  Entries
		want int
	}{
		"writes":                       {entries.Writes(), 9},
		"reads":                        {entries.Reads(), 3},
		"forbidden":                    {entries.Forbidden(), 2},
		"watches":                      {entries.Watches(), 1},
		"by user":                      {entries.ByUser("bob"), 3},
		"of a resource":                {entries.ForResource("pods"), 6},
		"without leases":               {entries.WithoutLeases(), 12},
		"without events":               {entries.WithoutEvents(), 12},
		"without reviews":              {entries.WithoutReviews(), 11},
		"without discovery":            {entries.WithoutDiscovery(), 12},
		"unexpected when idle":         {UnexpectedWhenIdle(entries, "ann"), 5}, // without the patch of an Event
		"unexpected when idle, leases": {UnexpectedWhenIdle(entries, "bob"), 2},
	} {
		if len(c.got) != c.want {
			t.Errorf("%s: %d entries, want %d:\n%s", name, len(c.got), c.want, c.got)
		}
	}
}

func TestUnchanged(t *testing.T) {
	entries := Entries{
		{Verb: "create", UID: "a", ResourceVersion: "1", Name: "first"},
		{Verb: "patch", UID: "a", ResourceVersion: "1", Name: "no change"},
		{Verb: "patch", UID: "b", ResourceVersion: "1", Name: "another object"},
		{Verb: "patch", UID: "a", ResourceVersion: "1", Name: "dry run", DryRun: true},
		{Verb: "patch", UID: "a", ResourceVersion: "2", Name: "change"},
		{Verb: "delete", Name: "response without object"},
		{Verb: "patch", UID: "a", ResourceVersion: "2", Name: "no change again"},
		{Verb: "patch", UID: "a", ResourceVersion: "2", Name: "logged late", Request: json.RawMessage(`{"metadata": {"resourceVersion": "1"}}`)},
	}
	got := entries.Unchanged()
	if len(got) != 2 || got[0].Name != "no change" || got[1].Name != "no change again" {
		t.Errorf("got unchanged writes\n%s\nwant 'no change' and 'no change again'", got)
	}
}

func TestEntryString(t *testing.T) {
	entry := Entry{
		Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "ns", Name: "a", User: "ann", Code: 200, DryRun: true,
	}
	if got, want := entry.String(), "patch deployments/status.apps ns/a by ann: 200 (dry run)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Entries{entry, entry}).String(); strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want two lines", got)
	}
}

func TestPositionAndSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	audit := &Audit{path: path}
	if _, err := audit.Position(); err == nil {
		t.Error("want an error for the position in a missing log")
	}
	if _, err := audit.Since(0); err == nil {
		t.Error("want an error for reading a missing log")
	}
	before := auditLine("ResponseComplete", "get", "ann", "/before", configMap, "200", "")
	after := auditLine("ResponseComplete", "get", "ann", "/after", configMap, "200", "")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	start, err := audit.Position()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(before+after), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := audit.Since(start)
	if err != nil || len(entries) != 1 || entries[0].URI != "/after" {
		t.Errorf("got %v, error %v since the position, want only /after", entries, err)
	}
	if entries, err := audit.Since(0); err != nil || len(entries) != 2 {
		t.Errorf("got %v, error %v since the start, want both", entries, err)
	}
}

// Position never returns a position inside a line that is being written.
func TestPositionWhileALineIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	audit := &Audit{path: path}
	before := auditLine("ResponseComplete", "get", "ann", "/before", configMap, "200", "")
	after := auditLine("ResponseComplete", "get", "ann", "/"+strings.Repeat("long", 40<<10), configMap, "200", "")
	for _, written := range []int{0, 1, len(after) / 2, len(after) - 1} {
		for _, first := range []string{before, ""} {
			if err := os.WriteFile(path, []byte(first+after[:written]), 0o600); err != nil {
				t.Fatal(err)
			}
			start, err := audit.Position()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(first+after), 0o600); err != nil {
				t.Fatal(err)
			}
			if entries, err := audit.Since(start); err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].URI, "/long") {
				t.Errorf("%d bytes of the line: got %d entries, error %v, want the line", written, len(entries), err)
			}
		}
	}
}
