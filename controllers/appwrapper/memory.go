package appwrapper

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// creationLag is how long the cache may take to show an object that was created.
const creationLag = 5 * time.Second

// memory is what a process knows beyond the stored status and the cache. All of it may be lost: it only saves requests, or
// bridges the moments in which the cache lags behind.
type memory struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.UID]*remembered // by the uid of the AppWrapper
}

// remembered belongs to one AppWrapper.
type remembered struct {
	created map[int]birth // by the index of the component
	least   map[int]int   // pods that are enough, by the index of the component
	done    map[types.UID]bool
	refused refusal
}

// refusal is why pods could not be created, and when that was read.
type refusal struct {
	at   time.Time
	text string
}

type birth struct {
	uid types.UID
	at  time.Time
	// adopted: it existed before, for what the times of creation tell too, unless they are of one second.
	adopted bool
}

func newMemory(c clock.PassiveClock) *memory {
	return &memory{clock: c, objects: map[types.UID]*remembered{}}
}

// in calls a function with what is remembered of an AppWrapper.
func (m *memory) in(aw types.UID, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[aw]
	if !ok {
		r = &remembered{created: map[int]birth{}, least: map[int]int{}, done: map[types.UID]bool{}}
		m.objects[aw] = r
	}
	do(r)
}

// created notes that a component was created.
func (m *memory) created(aw types.UID, index int, uid types.UID) {
	m.in(aw, func(r *remembered) { r.created[index] = birth{uid: uid, at: m.clock.Now()} })
}

// adopted notes that a component was restored and is taken over.
func (m *memory) adopted(aw types.UID, index int, uid types.UID) {
	m.in(aw, func(r *remembered) { r.created[index] = birth{uid: uid, at: m.clock.Now(), adopted: true} })
}

// wasAdopted reports whether a component was taken over.
func (m *memory) wasAdopted(aw types.UID, index int) (adopted bool) {
	m.in(aw, func(r *remembered) { adopted = r.created[index].adopted })
	return adopted
}

// saw notes which object a component is.
func (m *memory) saw(aw types.UID, index int, uid types.UID) {
	m.in(aw, func(r *remembered) {
		if r.created[index].uid != uid {
			r.created[index] = birth{uid: uid}
		}
	})
}

// leastOf returns how many pods of a component are enough, if that is known.
func (m *memory) leastOf(aw types.UID, index int) (least int, known bool) {
	m.in(aw, func(r *remembered) { least, known = r.least[index] })
	return least, known
}

func (m *memory) setLeast(aw types.UID, index, least int) {
	m.in(aw, func(r *remembered) { r.least[index] = least })
}

// isNew tells whether a component was created so lately that the cache may not show it.
func (m *memory) isNew(aw types.UID, index int) (isNew bool) {
	m.in(aw, func(r *remembered) {
		b, ok := r.created[index]
		isNew = ok && m.clock.Since(b.at) < creationLag
	})
	return isNew
}

// done notes that a component has reported success. An AppWrapper that is not known, or no longer, needs no note.
func (m *memory) done(aw, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, known := m.objects[aw]; known {
		r.done[uid] = true
	}
}

// wasDone tells whether the object that a component was last had reported success before it went.
func (m *memory) wasDone(aw types.UID, index int) (done bool) {
	m.in(aw, func(r *remembered) { done = r.done[r.created[index].uid] })
	return done
}

// forget drops what is remembered of an AppWrapper that is gone.
func (m *memory) forget(aw types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, aw)
}
