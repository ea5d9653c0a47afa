package apply

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// seed makes the hashes of this process; none of them is ever stored in the cluster.
var seed = maphash.MakeSeed()

// key names one child.
type key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// record is what the API server answered when a child was last written or looked at.
type record struct {
	intent  uint64    // hash of what was desired
	uid     types.UID // of the live object
	version string    // resourceVersion of the answer
	at      time.Time // of the answer
	fields  digest    // our own managed fields entry
	// generation is that of the answer, 0 for kinds without one. Admission of others moves it and leaves our fields ours.
	generation int64
	// differs stands for what the answer held when that was not what was sent; rounds counts how often it was the same.
	differs uint64
	rounds  int
}

// memories are the records of one owner. lookedBack says that objects of older operators have been searched once.
type memories struct {
	records    map[key]record
	lookedBack bool
}

// memory holds the records of all owners. Its lock is held only while the maps are touched.
type memory struct {
	mu     sync.RWMutex
	owners map[types.UID]*memories
}

func (m *memory) recall(owner types.UID, k key) (record, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	known, ok := m.owners[owner]
	if !ok {
		return record{}, false
	}
	r, ok := known.records[k]
	return r, ok
}

func (m *memory) remember(owner types.UID, k key, r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(owner).records[k] = r
}

func (m *memory) drop(owner types.UID, k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.owners[owner]; ok {
		delete(known.records, k)
	}
}

func (m *memory) forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, owner)
}

func (m *memory) forgetNamespace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.owners {
		maps.DeleteFunc(known.records, func(k key, _ record) bool { return k.Namespace == namespace })
	}
}

func (m *memory) hasLookedBack(owner types.UID) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	known, ok := m.owners[owner]
	return ok && known.lookedBack
}

func (m *memory) lookedBack(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(owner).lookedBack = true
}

// of returns the records of an owner, made when missing; the caller holds the lock.
func (m *memory) of(owner types.UID) *memories {
	known, ok := m.owners[owner]
	if !ok {
		known = &memories{records: map[key]record{}}
		m.owners[owner] = known
	}
	return known
}

// locks serialise the work on shared objects: the list of their owner references is read and written as one, under
// one field owner, so two owners at the same object at the same time would drop each other's reference. Objects fall
// on a fixed number of locks; a caller never holds two.
type locks [64]sync.Mutex

func (l *locks) lock(k key) (unlock func()) {
	one := &l[maphash.Comparable(seed, k)%uint64(len(l))]
	one.Lock()
	return one.Unlock
}

// Version returns the uid and the resourceVersion that a child of an owner had when it was last written or looked at here; both
// are empty when that is not known.
func (a *Applier) Version(owner types.UID, kind schema.GroupVersionKind, name types.NamespacedName) (types.UID, string) {
	known, _ := a.memory.recall(owner, key{kind, name})
	return known.uid, known.version
}
