package modelcatalog

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// additions is how often sources may be added in a row, each of which replaces the pod.
	additions = 6
	// additionEvery is how long it takes until one more addition is granted.
	additionEvery = time.Minute
)

// version tells one state of one object from all others.
type version struct {
	uid     types.UID
	version string
}

func versionOf(o metav1.Object) version { return version{o.GetUID(), o.GetResourceVersion()} }

// recollection is what is remembered of one Catalog.
type recollection struct {
	// good are the versions of objects that were read and found as they should be, by name.
	good  map[string]version
	spent int
	since time.Time // when the last of the spent additions was given back
	// sources are those that were taken last; postponed says that there are others.
	sources   []string
	postponed bool
}

// memory saves reading what was read, and bounds how often pods are replaced. It lasts as long as the process.
type memory struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	all   map[types.UID]*recollection
}

func newMemory(clk clock.PassiveClock) *memory {
	return &memory{clock: clk, all: map[types.UID]*recollection{}}
}

// of returns the recollection of a Catalog; the lock is held.
func (m *memory) of(uid types.UID) *recollection {
	r, ok := m.all[uid]
	if !ok {
		r = &recollection{good: map[string]version{}}
		m.all[uid] = r
	}
	return r
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, uid)
}

// isGood reports whether this state of an object was found good.
func (m *memory) isGood(uid types.UID, name string, o metav1.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(uid).good[name] == versionOf(o)
}

// found notes that a state of an object is good.
func (m *memory) found(uid types.UID, name string, o metav1.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(uid).good[name] = versionOf(o)
}

// mayAdd takes one addition of sources from the budget, if there is one.
func (m *memory) mayAdd(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, now := m.of(uid), m.clock.Now()
	for r.spent > 0 && now.Sub(r.since) >= additionEvery {
		r.spent, r.since = r.spent-1, r.since.Add(additionEvery)
	}
	if r.spent == additions {
		return false
	}
	if r.spent == 0 {
		r.since = now
	}
	r.spent++
	return true
}

// grant notes which sources were taken, before the cache shows it, and whether others have to wait.
func (m *memory) grant(uid types.UID, sources []string, postponed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(uid)
	r.sources, r.postponed = sources, postponed
}

func (m *memory) granted(uid types.UID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(uid).sources
}

func (m *memory) isPostponed(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(uid).postponed
}
