package events

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// modelState is a watch and the prefix that it watches. The expected events are computed from the changes that it received.
type modelState struct {
	watch   *prefixWatch
	entries map[string]meshetcd.Entry
	// seen is the state that the watch received: the revision and the owner of each vmodel, "" for an invalid value.
	seen     map[string]owned
	revision int64
	away     bool
	emitted  map[Event]bool
}

type owned struct {
	revision int64
	owner    string
}

func newModelState() *modelState {
	w := &modelState{entries: map[string]meshetcd.Entry{}, seen: map[string]owned{}, emitted: map[Event]bool{}}
	w.watch = &prefixWatch{prefix: "p/", log: logr.Discard(), notify: func(e Event) { w.emitted[e] = true }, parse: parseVModel, namespace: "n", clusterID: 1}
	return w
}

// change writes or deletes a vmodel, and delivers it to the watch if that is connected.
func (s *modelState) change(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
	value := rapid.SampledFrom([]string{`{}`, `{"o":"isvc"}`, `{"o":"ksp","failed":true}`, `broken`, ""}).Draw(t, "value")
	s.revision++
	entry := meshetcd.Entry{Key: "p/" + name, Value: []byte(value), Revision: s.revision, Deleted: value == ""}
	if entry.Deleted {
		delete(s.entries, name)
	} else {
		s.entries[name] = entry
	}
	if s.away {
		return
	}
	s.watch.handleEntry(entry)
	s.verify(t, map[string]bool{name: true})
}

// disconnect breaks the connection.
func (s *modelState) disconnect(*rapid.T) { s.away = true }

// relist lists again, after a broken connection or a compaction.
func (s *modelState) relist(t *rapid.T) {
	s.away = false
	s.watch.handleListing(s.listing())
	changed := map[string]bool{}
	for name := range s.seen {
		if now, found := s.entries[name]; !found || now.Revision != s.seen[name].revision {
			changed[name] = true
		}
	}
	for name := range s.entries {
		if _, known := s.seen[name]; !known {
			changed[name] = true
		}
	}
	s.verify(t, changed)
}

// replaceStore replaces the store by one with other revisions, possibly with the same entries.
func (s *modelState) replaceStore(t *rapid.T) {
	s.watch.clusterID += 100
	s.revision = int64(rapid.IntRange(0, 3).Draw(t, "revision"))
	for name, entry := range s.entries {
		s.revision++
		entry.Revision = s.revision
		s.entries[name] = entry
		if rapid.Bool().Draw(t, "lost") {
			delete(s.entries, name)
		}
	}
	s.away = false
	s.watch.handleListing(s.listing())
	changed := map[string]bool{}
	for name := range s.seen {
		changed[name] = true
	}
	for name := range s.entries {
		changed[name] = true
	}
	s.verify(t, changed)
}

func (s *modelState) listing() meshetcd.Listing {
	return meshetcd.Listing{Entries: slices.Collect(maps.Values(s.entries)), Revision: s.revision, ClusterID: 1}
}

// verify compares the emitted events with the changes: they name the previous and the current owner of a vmodel, and no other.
func (s *modelState) verify(t *rapid.T, changed map[string]bool) {
	want := map[Event]bool{}
	for name := range changed {
		before, known := s.seen[name]
		entry, found := s.entries[name]
		now := owned{revision: entry.Revision}
		if owner, _, err := parseVModel("m", entry.Value); found && err == nil {
			now.owner = owner
			want[Event{Source: owner, Namespace: "n", Name: name}] = true
		}
		if known && before.owner != "" && before.owner != now.owner {
			want[Event{Source: before.owner, Namespace: "n", Name: name}] = true
		}
		delete(s.seen, name)
		if found {
			s.seen[name] = now
		}
	}
	if !maps.Equal(s.emitted, want) {
		t.Fatalf("emitted %v, want %v", s.emitted, want)
	}
	clear(s.emitted)
	if len(s.watch.known) != len(s.seen) {
		t.Fatalf("%d entries are known, want %d", len(s.watch.known), len(s.seen))
	}
}

// [M32] For any changes during a watch and between watches, it emits an event for every owner whose vmodel changed, and for no other.
func TestEventsMatchChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newModelState()
		w.relist(t)
		t.Repeat(map[string]func(*rapid.T){
			"change": w.change, "change more": w.change, "leave": w.disconnect, "back": w.relist, "lose": w.replaceStore,
		})
	})
}

// Ids and values come from any client that may write to etcd.
func FuzzEntries(f *testing.F) {
	f.Add("digits", `{"o":"isvc"}`)
	f.Add("digits__isvc-6b2eb0b8bf", `{}`)
	f.Add("__-", `[`)
	f.Fuzz(func(t *testing.T, id, value string) {
		if source, name, err := parseModelID(id, nil); err == nil {
			if source == "" || name == "" || fmt.Sprintf("%s__%s-", name, source) != id[:len(id)-modelmesh.HashLength] {
				t.Errorf("%q is not made of %q and %q", id, name, source)
			}
		}
		if owner, _, err := parseVModel("m", []byte(value)); err == nil && owner == "" {
			t.Errorf("%q has an owner without a name", value)
		}
	})
}
