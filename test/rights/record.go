package rights

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// DirVariable is the environment variable with the directory of the records; the default is bin/rights of the checkout.
const DirVariable = "RIGHTS_DIR"

// Namespaces of a [Use] in place of names.
const (
	// Own is the namespace of the manager.
	Own = "own"
	// Other is any other namespace.
	Other = "other"
)

// Use is the use of a permission.
type Use struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource is the plural, with the subresource after a slash.
	Resource string `json:"resource,omitempty"`
	// Name of the object, only if a role contains it.
	Name string `json:"name,omitempty"`
	// Namespace is [Own], [Other], or empty for cluster-scoped objects and for requests in all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Path of a non-resource request, such as /metrics.
	Path string `json:"path,omitempty"`
}

// String returns the use in one line.
func (u Use) String() string {
	if u.Path != "" {
		return u.Verb + " " + u.Path
	}
	text := u.Verb + " " + u.Resource
	if u.Group != "" {
		resource, sub, found := strings.Cut(u.Resource, "/")
		text = u.Verb + " " + resource + "." + u.Group
		if found {
			text += "/" + sub
		}
	}
	if u.Name != "" {
		text += " " + u.Name
	}
	switch u.Namespace {
	case Own:
		text += " in its own namespace"
	case Other:
		text += " in another namespace"
	}
	return text
}

// Bound is a ClusterRole that a binding references.
type Bound struct {
	Name string `json:"name"`
	// Namespace of the binding as in [Use].
	Namespace string `json:"namespace,omitempty"`
	// Rules are those of the role at the end of the suite.
	Rules []Use `json:"rules,omitempty"`
}

// Refusal is a request that was forbidden because of a missing permission.
type Refusal struct {
	Use
	// Message of the API server.
	Message string `json:"message"`
	// Expected is true if a spec expected the missing permission.
	Expected bool `json:"expected,omitempty"`
}

// Run has the permissions that managers with the same components used.
type Run struct {
	// Components that were enabled, in alphabetical order; empty for all.
	Components []string `json:"components,omitempty"`
	// Used are the used permissions.
	Used []Use `json:"used"`
	// Granted are the permissions in created and changed roles.
	Granted []Use `json:"granted,omitempty"`
	// Bound are the ClusterRoles of created and changed bindings.
	Bound []Bound `json:"bound,omitempty"`
	// Refused are the forbidden requests.
	Refused []Refusal `json:"refused,omitempty"`
}

// Record is the record of a suite.
type Record struct {
	// Suite is the directory of the suite.
	Suite string `json:"suite"`
	// Complete reports whether all specs ran and passed.
	Complete bool `json:"complete"`
	// Runs has a run for each set of components.
	Runs []Run `json:"runs"`
}

// Add merges the runs of another control plane, or of another start of the suite.
func (r *Record) Add(runs ...Run) {
	for _, run := range runs {
		index := slices.IndexFunc(r.Runs, func(known Run) bool { return slices.Equal(known.Components, run.Components) })
		if index < 0 {
			r.Runs = append(r.Runs, Run{Components: run.Components})
			index = len(r.Runs) - 1
		}
		known := &r.Runs[index]
		known.Used = sorted(append(known.Used, run.Used...))
		known.Granted = sorted(append(known.Granted, run.Granted...))
		known.Bound = sorted(append(known.Bound, run.Bound...))
		known.Refused = sorted(append(known.Refused, run.Refused...))
	}
	slices.SortFunc(r.Runs, func(a, b Run) int { return slices.Compare(a.Components, b.Components) })
}

// sorted returns the elements sorted and without duplicates.
func sorted[T any](list []T) []T {
	key := func(element T) string { return fmt.Sprintf("%+v", element) }
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(list, func(a, b T) bool { return key(a) == key(b) })
}

// Dir returns the directory of the records.
func Dir() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir, nil
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "bin", "rights"), nil
}

// Write writes a record to a directory atomically. A complete record replaces an older one. A record of selected specs is merged into the
// older one without the older refusals, which may be fixed.
func (r *Record) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the directory of the permission records: %w", err)
	}
	path := filepath.Join(dir, r.Suite+".json")
	if !r.Complete {
		previous, err := read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if previous != nil {
			r.Complete = previous.Complete
			for i := range previous.Runs {
				previous.Runs[i].Refused = nil
			}
			r.Add(previous.Runs...)
		}
	}
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the permission record of %s: %w", r.Suite, err)
	}
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temporary, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the permission record of %s: %w", r.Suite, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing the permission record of %s: %w", r.Suite, err)
	}
	return nil
}

// ReadAll returns the records in a directory, or none if the directory does not exist.
func ReadAll(dir string) ([]*Record, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("finding the permission records in %s: %w", dir, err)
	}
	var records []*Record
	for _, path := range paths {
		record, err := read(path)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func read(path string) (*Record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a permission record: %w", err)
	}
	record := &Record{}
	if err := json.Unmarshal(content, record); err != nil {
		return nil, fmt.Errorf("decoding the permission record %s: %w", path, err)
	}
	return record, nil
}
