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

// Entry is one answered request in the audit log.
type Entry struct {
	// Verb of the request: create, update, patch, delete, deletecollection, get, list or watch.
	Verb string
	// User that sent it, such as `system:serviceaccount:opendatahub:manager`.
	User string
	// Group, Resource, Subresource, Namespace and Name of the object. Resource is empty for paths outside the API; Name
	// is empty for lists and for creations under a generated name.
	Group, Resource, Subresource, Namespace, Name string
	// URI that was asked.
	URI string
	// Code of the answer, and its message where it is a failure.
	Code    int
	Message string
	// DryRun says that nothing was to be stored.
	DryRun bool
	// UID and ResourceVersion of the object in the answer to a write; empty where the answer is not the object.
	UID, ResourceVersion string
	// Request is the body of a write as the server understood it.
	Request json.RawMessage
	// Received is when the request arrived, At when the answer was complete.
	Received, At time.Time
}

// String is one line for failure messages.
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

// Entries is a part of the audit log in the order of the answers.
type Entries []Entry

// String has one line per entry.
func (e Entries) String() string {
	lines := make([]string, 0, len(e))
	for _, entry := range e {
		lines = append(lines, entry.String())
	}
	return strings.Join(lines, "\n")
}

// Where keeps the entries for which keep is true.
func (e Entries) Where(keep func(Entry) bool) Entries {
	var kept Entries
	for _, entry := range e {
		if keep(entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// ByUser keeps what one user did.
func (e Entries) ByUser(user string) Entries {
	return e.Where(func(entry Entry) bool { return entry.User == user })
}

// Of keeps what was done to one resource in plural, such as `deployments`, its subresources included.
func (e Entries) Of(resource string) Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource == resource })
}

// Writes keeps creations, updates, patches and deletions, dry runs included: they cost a request too.
func (e Entries) Writes() Entries {
	return e.verbs("create", "update", "patch", "delete", "deletecollection")
}

// Reads keeps live reads: single objects and lists. Watches, with which caches are filled, are not among them.
func (e Entries) Reads() Entries { return e.verbs("get", "list") }

// Watches keeps the watches.
func (e Entries) Watches() Entries { return e.verbs("watch") }

// Refused keeps what was refused for want of a right, but not what was only untimely, see rights.IsUntimely.
func (e Entries) Refused() Entries {
	return e.Where(func(entry Entry) bool {
		return entry.Code == http.StatusUnauthorized || entry.Code == http.StatusForbidden && !rights.IsUntimely(entry.Message)
	})
}

func (e Entries) verbs(verbs ...string) Entries {
	return e.Where(func(entry Entry) bool { return slices.Contains(verbs, entry.Verb) })
}

// WithoutLeases drops what leader election and heartbeats do.
func (e Entries) WithoutLeases() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "leases" })
}

// WithoutEvents drops what the event recorder writes.
func (e Entries) WithoutEvents() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "events" })
}

// WithoutReviews drops the questions that a server asks about its own callers: token and access reviews.
func (e Entries) WithoutReviews() Entries {
	return e.Where(func(entry Entry) bool {
		return entry.Resource != "tokenreviews" && !strings.HasSuffix(entry.Resource, "accessreviews")
	})
}

// WithoutDiscovery drops reads of paths that name no resource: discovery, OpenAPI, health.
func (e Entries) WithoutDiscovery() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "" })
}

// Unchanged keeps successful writes that changed nothing: their answer bears the resourceVersion which an earlier write
// among these entries had left, whichever client sent it. A write whose predecessor is not among the entries is not counted, so
// hand over the whole log from before the objects were created.
func (e Entries) Unchanged() Entries {
	versions := map[string]string{}
	return e.Where(func(entry Entry) bool {
		if entry.UID == "" || entry.DryRun {
			return false
		}
		same := versions[entry.UID] == entry.ResourceVersion && !entry.replaces()
		versions[entry.UID] = entry.ResourceVersion
		return same
	})
}

// replaces reports whether the answer has another resourceVersion than the one that the request required. Of two writes at the same time, the
// log may have the second one first.
func (e Entry) replaces() bool {
	var request struct {
		Metadata struct{ ResourceVersion string }
	}
	err := json.Unmarshal(e.Request, &request)
	return err == nil && request.Metadata.ResourceVersion != "" && request.Metadata.ResourceVersion != e.ResourceVersion
}

// Mark is a place in the audit log.
type Mark int64

// Audit reads the audit log of an instance.
type Audit struct{ path string }

// Audit returns the audit log of the instance.
func (e *Env) Audit() *Audit { return &Audit{path: e.Instance.AuditLog()} }

// Mark returns the end of the log now.
func (a *Audit) Mark() (Mark, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	end, err := lastLineEnd(file)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	return Mark(end), nil
}

// lastLineEnd is the offset behind the last newline, 0 without one: the line after it may still be on its way.
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
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return start + int64(at) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// Since returns what was answered after a mark; the mark 0 is the start of the log.
func (a *Audit) Since(mark Mark) (Entries, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log from %d: %w", mark, err)
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
		entry, complete, err := parseEntry(line)
		if err != nil {
			return nil, err
		}
		if complete {
			entries = append(entries, entry)
		}
	}
}

// auditEvent is the part of audit.k8s.io/v1 Event which is used.
type auditEvent struct {
	Stage      string
	Verb       string
	RequestURI string
	// RequestReceivedTimestamp is when the request arrived, StageTimestamp the end of the stage.
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

// parseEntry reads one line. A watch is logged at its start and at its end: the start counts, or the end of one that
// was refused.
func parseEntry(line []byte) (Entry, bool, error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return Entry{}, false, fmt.Errorf("decoding an audit entry: %w", err)
	}
	watch, refused := event.Verb == "watch", event.ResponseStatus.Code >= http.StatusBadRequest
	started, ended := event.Stage == "ResponseStarted", event.Stage == "ResponseComplete"
	if counts := watch && started || ended && (!watch || refused); !counts {
		return Entry{}, false, nil
	}
	ref, answer := event.ObjectRef, event.ResponseObject.Metadata
	entry := Entry{
		Verb: event.Verb, User: event.User.Username, URI: event.RequestURI, Code: event.ResponseStatus.Code, Message: event.ResponseStatus.Message,
		Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource, Namespace: ref.Namespace, Name: ref.Name,
		DryRun:  strings.Contains(event.RequestURI, "dryRun=All") || bytes.Contains(event.RequestObject, []byte(`"dryRun":["All"]`)),
		Request: event.RequestObject,
		UID:     answer.UID, ResourceVersion: answer.ResourceVersion,
		Received: event.RequestReceivedTimestamp, At: event.StageTimestamp,
	}
	if entry.Name == "" && entry.Verb == "create" {
		entry.Name = answer.Name
	}
	return entry, true, nil
}
