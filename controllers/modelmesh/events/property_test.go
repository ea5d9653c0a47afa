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

// watchSimulation is a prefixWatch and the etcd that it watches. The expected events are computed from the changes that the watch received.
type watchSimulation struct {
	watch   *prefixWatch
	entries map[string]meshetcd.Entry
	// received is the last version of each vmodel that the watch received.
	received     map[string]vmodelVersion
	revision     int64
	disconnected bool
	emitted      map[Event]bool
}

type vmodelVersion struct {
	revision int64
	owner    string // empty if the value is invalid
}

func newWatchSimulation() *watchSimulation {
	w := &watchSimulation{entries: map[string]meshetcd.Entry{}, received: map[string]vmodelVersion{}, emitted: map[Event]bool{}}
	w.watch = &prefixWatch{prefix: "p/", log: logr.Discard(), notify: func(e Event) { w.emitted[e] = true }, parse: parseVModel, namespace: "n", clusterID: 1}
	return w
}

// change writes or deletes a vmodel, and sends the event to the watch if it is connected.
func (s *watchSimulation) change(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
	value := rapid.SampledFrom([]string{`{}`, `{"o":"isvc"}`, `{"o":"ksp","failed":true}`, `broken`, ""}).Draw(t, "value")
	s.revision++
	entry := meshetcd.Entry{Key: "p/" + name, Value: []byte(value), Revision: s.revision, Deleted: value == ""}
	if entry.Deleted {
		delete(s.entries, name)
	} else {
		s.entries[name] = entry
	}
	if s.disconnected {
		return
	}
	s.watch.handleEntry(entry)
	s.verify(t, map[string]bool{name: true})
}

// disconnect disconnects the watch from etcd.
func (s *watchSimulation) disconnect(*rapid.T) { s.disconnected = true }

// relist lists again, as after a lost connection or a compaction.
func (s *watchSimulation) relist(t *rapid.T) {
	s.disconnected = false
	s.watch.handleListing(s.listing())
	changed := map[string]bool{}
	for name := range s.received {
		if current, found := s.entries[name]; !found || current.Revision != s.received[name].revision {
			changed[name] = true
		}
	}
	for name := range s.entries {
		if _, wasReceived := s.received[name]; !wasReceived {
			changed[name] = true
		}
	}
	s.verify(t, changed)
}

// replaceEtcd replaces etcd with another cluster, which has other revisions and some of the entries.
func (s *watchSimulation) replaceEtcd(t *rapid.T) {
	s.watch.clusterID += 100
	s.revision = int64(rapid.IntRange(0, 3).Draw(t, "revision"))
	for name, entry := range s.entries {
		s.revision++
		entry.Revision = s.revision
		s.entries[name] = entry
		if rapid.Bool().Draw(t, "delete") {
			delete(s.entries, name)
		}
	}
	s.disconnected = false
	s.watch.handleListing(s.listing())
	changed := map[string]bool{}
	for name := range s.received {
		changed[name] = true
	}
	for name := range s.entries {
		changed[name] = true
	}
	s.verify(t, changed)
}

func (s *watchSimulation) listing() meshetcd.Listing {
	return meshetcd.Listing{Entries: slices.Collect(maps.Values(s.entries)), Revision: s.revision, ClusterID: 1}
}

// verify compares the emitted events with the changes: an event for the current and for the previous owner of each vmodel.
func (s *watchSimulation) verify(t *rapid.T, changed map[string]bool) {
	want := map[Event]bool{}
	for name := range changed {
		previous, wasReceived := s.received[name]
		entry, found := s.entries[name]
		current := vmodelVersion{revision: entry.Revision}
		if owner, _, err := parseVModel("m", entry.Value); found && err == nil {
			current.owner = owner
			want[Event{Source: owner, Namespace: "n", Name: name}] = true
		}
		if wasReceived && previous.owner != "" && previous.owner != current.owner {
			want[Event{Source: previous.owner, Namespace: "n", Name: name}] = true
		}
		delete(s.received, name)
		if found {
			s.received[name] = current
		}
	}
	if !maps.Equal(s.emitted, want) {
		t.Fatalf("emitted %v, want %v", s.emitted, want)
	}
	clear(s.emitted)
	if len(s.watch.known) != len(s.received) {
		t.Fatalf("%d known keys, want %d", len(s.watch.known), len(s.received))
	}
}

// [M32] For any changes during and between watches, prefixWatch emits events for the current and the previous owner of each changed vmodel,
// and no other events.
func TestEventsMatchChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatchSimulation()
		w.relist(t)
		t.Repeat(map[string]func(*rapid.T){
			"change": w.change, "change again": w.change, "disconnect": w.disconnect, "relist": w.relist, "replace etcd": w.replaceEtcd,
		})
	})
}

// FuzzEntries checks that parsed IDs and values are consistent: any client with access to etcd can write them.
func FuzzEntries(f *testing.F) {
	f.Add("digits", `{"o":"isvc"}`)
	f.Add("digits__isvc-6b2eb0b8bf", `{}`)
	f.Add("__-", `[`)
	f.Fuzz(func(t *testing.T, id, value string) {
		if source, name, err := parseModelID(id, nil); err == nil {
			if source == "" || name == "" || fmt.Sprintf("%s__%s-", name, source) != id[:len(id)-modelmesh.HashLength] {
				t.Errorf("%q: name %q and source %q do not match the ID", id, name, source)
			}
		}
		if owner, _, err := parseVModel("m", []byte(value)); err == nil && owner == "" {
			t.Errorf("%q: the owner is empty", value)
		}
	})
}
