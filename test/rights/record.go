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

// DirVariable names the folder of the records; the default is bin/rights of the checkout.
const DirVariable = "RIGHTS_DIR"

// Namespaces of a [Use] in place of names, which vary.
const (
	// Own is the namespace of the manager.
	Own = "own"
	// Other is any other namespace.
	Other = "other"
)

// Use is the use of a right.
type Use struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource in plural, with its subresource after a slash.
	Resource string `json:"resource,omitempty"`
	// Name of the object, only if a role names it.
	Name string `json:"name,omitempty"`
	// Namespace is [Own], [Other], or empty for cluster-scoped objects and for requests across all namespaces.
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
	// Rules of the role when the suite ended.
	Rules []Use `json:"rules,omitempty"`
}

// Refusal is a request that was refused for lack of a right.
type Refusal struct {
	Use
	// Message of the API server.
	Message string `json:"message"`
	// Expected is true if a spec had removed the right, or had never granted it.
	Expected bool `json:"expected,omitempty"`
}

// Run has the rights that managers with the same components used.
type Run struct {
	// Components that were enabled, in alphabetical order; empty for all.
	Components []string `json:"components,omitempty"`
	// Used are the rights which were used.
	Used []Use `json:"used"`
	// Granted are the rights that created and changed roles grant to others.
	Granted []Use `json:"granted,omitempty"`
	// Bound are the roles that bindings grant to others.
	Bound []Bound `json:"bound,omitempty"`
	// Refused are the refused requests.
	Refused []Refusal `json:"refused,omitempty"`
}

// Record of a suite.
type Record struct {
	// Suite is the folder of the suite.
	Suite string `json:"suite"`
	// Complete reports whether all specs ran.
	Complete bool `json:"complete"`
	// Runs by their components.
	Runs []Run `json:"runs"`
}

// Add adds the runs of another control plane of the suite, or of another start of it.
func (r *Record) Add(runs ...Run) {
	for _, run := range runs {
		at := slices.IndexFunc(r.Runs, func(known Run) bool { return slices.Equal(known.Components, run.Components) })
		if at < 0 {
			r.Runs = append(r.Runs, Run{Components: run.Components})
			at = len(r.Runs) - 1
		}
		known := &r.Runs[at]
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

// Dir returns the folder of the records.
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

// Write stores a record in a folder atomically. A complete record replaces an older one; a record of chosen specs is merged into it,
// except for the older refusals, which may have been fixed.
func (r *Record) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder of the used rights: %w", err)
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
		return fmt.Errorf("encoding the used rights of %s: %w", r.Suite, err)
	}
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temporary, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the used rights of %s: %w", r.Suite, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing the used rights of %s: %w", r.Suite, err)
	}
	return nil
}

// ReadAll returns the records in a folder, or none if the folder does not exist.
func ReadAll(dir string) ([]*Record, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("finding the used rights in %s: %w", dir, err)
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
		return nil, fmt.Errorf("reading used rights: %w", err)
	}
	record := &Record{}
	if err := json.Unmarshal(content, record); err != nil {
		return nil, fmt.Errorf("reading used rights of %s: %w", path, err)
	}
	return record, nil
}
