package models

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// outcome is how the last call about a model ended.
type outcome int

const (
	unasked   outcome = iota // nothing is known
	answered                 // the mesh said how the model is
	noAddress                // no pod was there to be asked
	taken                    // another source has the name
	different                // the mesh has the model under its id with other attributes
)

// order is why a model is to be loaded at once. A model that is not in memory says nothing about the reason: an instance may have
// dropped it for others, and to load all of those again and again would make models evict each other without end.
type order int

const (
	orderNone  order = iota
	orderStart       // nothing is remembered: a load that was under way may have been lost
	orderLost        // the pods have changed, and the only copy may be gone
	orderNew         // the spec has changed
)

// entry is what is remembered of one model. It is lost on restart: the mesh is called again then.
type entry struct {
	// asked is what the outcome is about: the id of a model, its resource, and what is wrong with it.
	asked   string
	outcome outcome
	info    *meshpb.VModelStatusInfo
	// stale tells that something happened in the mesh since, and fresh that other pods are there than were.
	stale, fresh bool
	// heardOf tells that the first that was known of the model was its name in etcd.
	heardOf bool
	// order is why the next question tells the mesh to load the model at once, whatever its state was.
	order order
	// failures counts the questions in a row that got no answer, the last one because of trouble.
	failures int
	trouble  string
	// again is when to ask without an event, after so many attempts; zero for never.
	again    time.Time
	attempts int
	// awaited is since when a runtime is there that the mesh does not know; zero for never.
	awaited time.Time
}

// podsChanged drops the patience that was learnt, and orders what may have lost its only copy.
func (e *entry) podsChanged() {
	e.again, e.attempts, e.awaited = time.Time{}, 0, time.Time{}
	e.order = max(e.order, orderLost)
}

// maxHeardOf is of how many models of one namespace the mesh may tell before it was looked whether they exist: names in an etcd that
// a namespace has for itself are endless.
const maxHeardOf = meshetcd.MaxKeys

// memory has an entry for each model that there is, and for each that may have to be removed from the mesh.
type memory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]entry
	// heardOf counts, by namespace of the keys, the entries of which nothing but a name in etcd is known.
	heardOf map[string]int
}

func newMemory() *memory {
	return &memory{entries: map[types.NamespacedName]entry{}, heardOf: map[string]int{}}
}

// remove deletes an entry; the memory is locked.
func (m *memory) remove(key types.NamespacedName) {
	if m.entries[key].heardOf {
		if m.heardOf[key.Namespace]--; m.heardOf[key.Namespace] == 0 {
			delete(m.heardOf, key.Namespace)
		}
	}
	delete(m.entries, key)
}

// look returns what is known of a model.
func (m *memory) look(key types.NamespacedName) (entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[key]
	return e, known
}

// take is look for who is going to ask: what happens from now on makes the entry stale again.
func (m *memory) take(key types.NamespacedName) entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	taken := e
	e.stale, e.fresh = false, false
	m.entries[key] = e
	return taken
}

// put stores what has been learnt, but not over news.
func (m *memory) put(key types.NamespacedName, e entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := m.entries[key]
	e.stale, e.fresh, e.heardOf = news.stale, news.fresh, news.heardOf
	if e.fresh {
		e.podsChanged()
	}
	m.entries[key] = e
}

// forget drops a model that is gone from the mesh, unless there is news of it.
func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.entries[key].stale {
		m.remove(key)
	}
}

// drop forgets a model whatever there is.
func (m *memory) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

// mark notes that the mesh wrote something about a model. One that is not known may be an orphan.
func (m *memory) mark(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[key]
	if !known {
		if m.heardOf[key.Namespace] >= maxHeardOf {
			return
		}
		m.heardOf[key.Namespace]++
		e.heardOf = true
	}
	e.stale = true
	m.entries[key] = e
}

// markIfKnown is mark for a model that is only possibly concerned.
func (m *memory) markIfKnown(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[key]
	if known {
		e.stale = true
		m.entries[key] = e
	}
	return known
}

// markNamespaceStale has the mesh asked again about all models of a namespace, without growing pauses, and returns them.
func (m *memory) markNamespaceStale(namespace string) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []types.NamespacedName
	for key, e := range m.entries {
		if _, name := split(key); name.Namespace == namespace {
			e.stale, e.fresh = true, true
			e.podsChanged()
			m.entries[key] = e
			keys = append(keys, key)
		}
	}
	return keys
}

// of returns the models of a source.
func (m *memory) of(source string) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []types.NamespacedName
	for key := range m.entries {
		if id, _ := split(key); id == source {
			keys = append(keys, key)
		}
	}
	return keys
}

// in returns the models of a namespace, whatever their source.
func (m *memory) in(namespace string) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []types.NamespacedName
	for key := range m.entries {
		if _, name := split(key); name.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// join is the key of a model of a source: neither sources nor namespaces have an underscore.
func join(source string, name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: source + "_" + name.Namespace, Name: name.Name}
}

// split is the source and the name in a key.
func split(key types.NamespacedName) (string, types.NamespacedName) {
	source, namespace, _ := strings.Cut(key.Namespace, "_")
	return source, types.NamespacedName{Namespace: namespace, Name: key.Name}
}
