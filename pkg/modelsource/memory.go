package modelsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// burial is how long a removed entry is remembered, so that an older word about it does not bring it back.
const burial = 20 * time.Second

// Change is what a backend tells.
type Change struct {
	// Entry as it is now, or as it was last. Its version is a number that grows with every change, also with the deletion.
	Entry *Entry
	// Deleted says that it is gone.
	Deleted bool
}

// StatusWriter stores the status of an entry and returns the entry as it is then; false says that the given one is outdated or gone.
type StatusWriter interface {
	UpdateStatus(ctx context.Context, entry *Entry, status v1alpha1.PredictorStatus) (*Entry, bool, error)
}

// Options are what the sources of this package have in common. All are required.
type Options struct {
	// Name and Title are what ID and DisplayName return.
	Name, Title string
	// Clock measures the pauses, and how long what is gone is remembered.
	Clock clock.Clock
	// Log is told of trouble with the backend.
	Log logr.Logger
}

// ID implements Source.
func (o Options) ID() string { return o.Name }

// DisplayName implements Source.
func (o Options) DisplayName() string { return o.Title }

// memory is what is known of the models of a source. Of two words about an entry the one with the greater version holds.
type memory struct {
	Options
	writer StatusWriter

	listeners follow.Listeners[types.NamespacedName]

	mu      sync.Mutex
	entries map[types.NamespacedName]held
	graves  map[types.NamespacedName]grave
}

type held struct {
	entry   *Entry
	version uint64
}

type grave struct {
	version uint64
	until   time.Time
}

func newMemory(o Options, writer StatusWriter) *memory {
	return &memory{Options: o, writer: writer, entries: map[types.NamespacedName]held{}, graves: map[types.NamespacedName]grave{}}
}

// Subscribe implements Source.
func (m *memory) Subscribe(ctx context.Context, listener func(types.NamespacedName)) {
	m.listeners.Subscribe(ctx, listener)
}

// Get implements Source.
func (m *memory) Get(name types.NamespacedName) *Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[name].entry
}

// List implements Source. The models are ordered by name.
func (m *memory) List(namespace string, keep func(*Entry) bool) []*Entry {
	var out []*Entry
	m.mu.Lock()
	for name, h := range m.entries {
		if name.Namespace == namespace {
			out = append(out, h.entry)
		}
	}
	m.mu.Unlock()
	out = slices.DeleteFunc(out, func(e *Entry) bool { return !keep(e) })
	slices.SortFunc(out, func(a, b *Entry) int { return cmp.Compare(a.Model.Name, b.Model.Name) })
	return out
}

// UpdateStatus implements Source. Listeners are not told: whoever writes a status knows it.
func (m *memory) UpdateStatus(ctx context.Context, entry *Entry, status v1alpha1.PredictorStatus) (bool, error) {
	if present := m.Get(nameOf(entry)); present == nil || present.Version != entry.Version {
		return false, nil
	}
	next, ok, err := m.writer.UpdateStatus(ctx, entry, status)
	if err != nil {
		return false, fmt.Errorf("storing the status of %s: %w", nameOf(entry), err)
	}
	if ok {
		m.put(next)
	}
	return ok, nil
}

// take takes a change and tells the listeners when it is news.
func (m *memory) take(c Change) {
	news := false
	if c.Deleted {
		news = m.remove(c.Entry)
	} else {
		news = m.put(c.Entry)
	}
	if news {
		m.listeners.Notify(nameOf(c.Entry))
	}
}

// put remembers an entry and returns whether it is newer than what was known.
func (m *memory) put(e *Entry) bool {
	version, ok := m.version(e)
	if !ok {
		return false
	}
	name := nameOf(e)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tidy()
	former, known := m.entries[name]
	buried, gone := m.graves[name]
	if known && former.version >= version || gone && buried.version >= version {
		return false
	}
	delete(m.graves, name)
	m.entries[name] = held{entry: e, version: version}
	return true
}

// remove forgets an entry and returns whether it was known, unless what is known is newer.
func (m *memory) remove(e *Entry) bool {
	version, ok := m.version(e)
	if !ok {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tidy()
	return m.bury(nameOf(e), version)
}

func (m *memory) bury(name types.NamespacedName, version uint64) bool {
	former, known := m.entries[name]
	if known && former.version > version {
		return false
	}
	delete(m.entries, name)
	m.graves[name] = grave{version: max(version, m.graves[name].version), until: m.Clock.Now().Add(burial)}
	return known
}

// tidy forgets graves whose time is over.
func (m *memory) tidy() {
	now := m.Clock.Now()
	for name, g := range m.graves {
		if now.After(g.until) {
			delete(m.graves, name)
		}
	}
}

// retain removes the entries that a full listing of the given version no longer has, and returns their names.
func (m *memory) retain(listed map[types.NamespacedName]bool, version uint64) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []types.NamespacedName
	for name := range m.entries {
		if !listed[name] && m.bury(name, version) {
			gone = append(gone, name)
		}
	}
	return gone
}

// version reads the version of an entry; one that is none is logged, and the entry left out.
func (m *memory) version(e *Entry) (uint64, bool) {
	version, err := strconv.ParseUint(e.Version, 10, 64)
	if err != nil {
		m.Log.Info("A model has a version that is no number; it is left out", "source", m.Name, "model", nameOf(e), "version", e.Version)
	}
	return version, err == nil
}

func nameOf(e *Entry) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Model.Namespace, Name: e.Model.Name}
}
