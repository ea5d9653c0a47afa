package framework

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

// Entry is one request in the audit log.
type Entry struct {
	// Verb is create, update, patch, delete, deletecollection, get, list or watch.
	Verb string
	// User is the client, such as `system:serviceaccount:opendatahub:manager`.
	User string
	// Group, Resource, Subresource, Namespace and Name of the object. Resource is empty for non-resource paths; Name is empty for lists and
	// can be empty for generateName.
	Group, Resource, Subresource, Namespace, Name string
	// URI of the request.
	URI string
	// Code of the response, and its message if the request failed.
	Code    int
	Message string
	// DryRun is true for a dry run.
	DryRun bool
	// UID and ResourceVersion of the object in the response to a write; empty if the log does not contain the object, as of a Secret or Lease.
	UID, ResourceVersion string
	// Request is the body of a write as the server decoded it; empty for Secrets, Leases, token requests and token reviews.
	Request json.RawMessage
	// Received is when the request arrived, Responded when the response was complete or, for a watch, started.
	Received, Responded time.Time
}

// String formats the entry as one line.
func (e Entry) String() string {
	resource := e.Resource
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	if e.Group != "" {
		resource += "." + e.Group
	}
	line := fmt.Sprintf("%s %s %s/%s by %s: %d", e.Verb, resource, e.Namespace, e.Name, e.User, e.Code)
	if e.DryRun {
		line += " (dry run)"
	}
	return line
}

// Entries is a part of the audit log, in the order of its lines.
type Entries []Entry

// String formats each entry as one line.
func (e Entries) String() string {
	lines := make([]string, 0, len(e))
	for _, entry := range e {
		lines = append(lines, entry.String())
	}
	return strings.Join(lines, "\n")
}

// Where returns the entries for which keep returns true.
func (e Entries) Where(keep func(Entry) bool) Entries {
	var kept Entries
	for _, entry := range e {
		if keep(entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// ByUser returns the requests of one user.
func (e Entries) ByUser(user string) Entries {
	return e.Where(func(entry Entry) bool { return entry.User == user })
}

// ForResource returns the requests for one resource in plural, such as `deployments`, including its subresources.
func (e Entries) ForResource(resource string) Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource == resource })
}

// Writes returns creations, updates, patches and deletions, including dry runs.
func (e Entries) Writes() Entries {
	return e.verbs("create", "update", "patch", "delete", "deletecollection")
}

// ObjectWrites returns the writes of a user, except those of leases, reviews and Events.
func (e Entries) ObjectWrites(user string) Entries {
	return e.ByUser(user).WithoutLeases().WithoutReviews().WithoutEvents().Writes()
}

// Reads returns gets and lists, but no watches.
func (e Entries) Reads() Entries { return e.verbs("get", "list") }

// Watches returns the watches.
func (e Entries) Watches() Entries { return e.verbs("watch") }

// Forbidden returns the requests with status 401 or 403; see rights.IsUntimely for the exceptions.
func (e Entries) Forbidden() Entries {
	return e.Where(func(entry Entry) bool {
		return entry.Code == http.StatusUnauthorized || entry.Code == http.StatusForbidden && !rights.IsUntimely(entry.Message)
	})
}

func (e Entries) verbs(verbs ...string) Entries {
	return e.Where(func(entry Entry) bool { return slices.Contains(verbs, entry.Verb) })
}

// WithoutLeases drops the requests of leader election and heartbeats.
func (e Entries) WithoutLeases() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "leases" })
}

// WithoutEvents drops the requests for Events.
func (e Entries) WithoutEvents() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "events" })
}

// WithoutReviews drops token and access reviews.
func (e Entries) WithoutReviews() Entries {
	return e.Where(func(entry Entry) bool {
		return entry.Resource != "tokenreviews" && !strings.HasSuffix(entry.Resource, "accessreviews")
	})
}

// WithoutDiscovery drops requests for non-resource paths: discovery, OpenAPI, health.
func (e Entries) WithoutDiscovery() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "" })
}

// Unchanged returns successful writes that changed nothing: their response has the resourceVersion of the previous write of any client. A
// write is compared only if the entries contain a previous write of its object, so pass the log from before the creation of the objects.
func (e Entries) Unchanged() Entries {
	versions := map[string]string{}
	return e.Where(func(entry Entry) bool {
		if entry.UID == "" || entry.DryRun {
			return false
		}
		unchanged := versions[entry.UID] == entry.ResourceVersion && !entry.changedVersion()
		versions[entry.UID] = entry.ResourceVersion
		return unchanged
	})
}

// changedVersion reports whether the resourceVersion of the response differs from the one that the request required. Unchanged needs it,
// because the log may list two concurrent writes in reverse order.
func (e Entry) changedVersion() bool {
	var request struct {
		Metadata struct{ ResourceVersion string }
	}
	err := json.Unmarshal(e.Request, &request)
	return err == nil && request.Metadata.ResourceVersion != "" && request.Metadata.ResourceVersion != e.ResourceVersion
}

// AuditPosition is a position in the audit log.
type AuditPosition int64

// Audit reads the audit log of an instance.
type Audit struct{ path string }

// Audit returns the audit log of the instance.
func (e *Env) Audit() *Audit { return &Audit{path: e.Instance.AuditLog()} }

// Position returns the current end of the log.
func (a *Audit) Position() (AuditPosition, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	end, err := lastLineEnd(file)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	return AuditPosition(end), nil
}

// lastLineEnd returns the offset after the last newline, or 0. A line after it may be incomplete.
func lastLineEnd(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
		start := max(0, end-int64(len(block)))
		part := block[:end-start]
		if _, err := file.ReadAt(part, start); err != nil {
			return 0, err
		}
		if newline := bytes.LastIndexByte(part, '\n'); newline >= 0 {
			return start + int64(newline) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// Since returns the requests logged after a position; position 0 is the start of the log.
func (a *Audit) Since(start AuditPosition) (Entries, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	if _, err := file.Seek(int64(start), io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log from %d: %w", start, err)
	}
	return parseAudit(file)
}

// parseAudit reads the log up to its last complete line.
func parseAudit(log io.Reader) (Entries, error) {
	var entries Entries
	for reader := bufio.NewReader(log); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		entry, isEntry, err := parseEntry(line)
		if err != nil {
			return nil, err
		}
		if isEntry {
			entries = append(entries, entry)
		}
	}
}

// auditEvent contains the used fields of Event of audit.k8s.io/v1.
type auditEvent struct {
	Stage      string
	Verb       string
	RequestURI string
	// RequestReceivedTimestamp is when the request arrived, StageTimestamp when the request reached the stage.
	RequestReceivedTimestamp, StageTimestamp time.Time
	User                                     struct{ Username string }
	ObjectRef                                struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	ResponseStatus struct {
		Code    int
		Message string
	}
	RequestObject  json.RawMessage
	ResponseObject struct {
		Metadata struct{ UID, ResourceVersion, Name string }
	}
}

// parseEntry parses one line, and reports whether it is an entry. The entry of a watch is the event at its start; a rejected watch has only
// an event at its end.
func parseEntry(line []byte) (Entry, bool, error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return Entry{}, false, fmt.Errorf("decoding an audit entry: %w", err)
	}
	watch, rejected := event.Verb == "watch", event.ResponseStatus.Code >= http.StatusBadRequest
	started, ended := event.Stage == "ResponseStarted", event.Stage == "ResponseComplete"
	if isEntry := watch && started || ended && (!watch || rejected); !isEntry {
		return Entry{}, false, nil
	}
	ref, response := event.ObjectRef, event.ResponseObject.Metadata
	entry := Entry{
		Verb: event.Verb, User: event.User.Username, URI: event.RequestURI, Code: event.ResponseStatus.Code, Message: event.ResponseStatus.Message,
		Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource, Namespace: ref.Namespace, Name: ref.Name,
		DryRun:  strings.Contains(event.RequestURI, "dryRun=All") || bytes.Contains(event.RequestObject, []byte(`"dryRun":["All"]`)),
		Request: event.RequestObject,
		UID:     response.UID, ResourceVersion: response.ResourceVersion,
		Received: event.RequestReceivedTimestamp, Responded: event.StageTimestamp,
	}
	if entry.Name == "" && entry.Verb == "create" {
		entry.Name = response.Name
	}
	return entry, true, nil
}
