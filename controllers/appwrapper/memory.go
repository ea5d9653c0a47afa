package appwrapper

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// creationLag is the maximum delay of the cache after a creation.
const creationLag = 5 * time.Second

// memory is the state of the process besides the stored status and the cache. Losing it is harmless: it saves requests, and covers the delay
// podOf the cache.
type memory struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.UID]*workloadState // ownedBy the uid of the AppWrapper
}

// workloadState is the state of one AppWrapper.
type workloadState struct {
	objects   map[int]componentObject // ownedBy component index
	minReady  map[int]int             // ownedBy component index
	succeeded map[types.UID]bool
	// deferred is the state of created components until it is stored; nil for none. Without it, as after a restart, the creation is repeated and
	// finds the objects.
	deferred []awv1beta2.AppWrapperComponentStatus
	refusal  creationRefusal
}

// creationRefusal is the reason why pods could not be created, and the time at which it was read.
type creationRefusal struct {
	at   time.Time
	text string
}

type componentObject struct {
	uid       types.UID
	createdAt time.Time
	// adopted reports that the object existed before the AppWrapper. Creation times show that too, unless both are in the same second.
	adopted bool
}

// withState calls do with the state of an AppWrapper, under the lock.
func (m *memory) withState(aw types.UID, do func(*workloadState)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[aw]
	if !ok {
		r = &workloadState{objects: map[int]componentObject{}, minReady: map[int]int{}, succeeded: map[types.UID]bool{}}
		m.objects[aw] = r
	}
	do(r)
}

// setCreated stores the object that was created or adopted for a component.
func (m *memory) setCreated(aw types.UID, index int, uid types.UID, adopted bool) {
	m.withState(aw, func(r *workloadState) {
		r.objects[index] = componentObject{uid: uid, createdAt: m.clock.Now(), adopted: adopted}
	})
}

// restoreDeferred sets the state of created components that is not stored yet, and drops it once the AppWrapper is in another phase.
func (m *memory) restoreDeferred(aw *awv1beta2.AppWrapper) {
	m.withState(aw.UID, func(r *workloadState) {
		if aw.Status.Phase != awv1beta2.PhaseResuming || aw.DeletionTimestamp != nil {
			r.deferred = nil
		} else if len(r.deferred) == len(aw.Status.ComponentStatus) {
			aw.Status.ComponentStatus = (&awv1beta2.AppWrapperStatus{ComponentStatus: r.deferred}).DeepCopy().ComponentStatus
		}
	})
}

// wasAdopted reports whether the object of a component was adopted.
func (m *memory) wasAdopted(aw types.UID, index int) (adopted bool) {
	m.withState(aw, func(r *workloadState) { adopted = r.objects[index].adopted })
	return adopted
}

// setObserved stores the uid of the object of a component.
func (m *memory) setObserved(aw types.UID, index int, uid types.UID) {
	m.withState(aw, func(r *workloadState) {
		if r.objects[index].uid != uid {
			r.objects[index] = componentObject{uid: uid}
		}
	})
}

// minReady returns the number of pods that a component needs to be ready, if stored.
func (m *memory) minReady(aw types.UID, index int) (count int, ok bool) {
	m.withState(aw, func(r *workloadState) { count, ok = r.minReady[index] })
	return count, ok
}

// isRecentlyCreated reports whether the cache may not hold the object of a component yet.
func (m *memory) isRecentlyCreated(aw types.UID, index int) (isNew bool) {
	m.withState(aw, func(r *workloadState) {
		b, ok := r.objects[index]
		isNew = ok && m.clock.Since(b.createdAt) < creationLag
	})
	return isNew
}

// setSucceeded stores that an object reported success, if the AppWrapper is ok.
func (m *memory) setSucceeded(aw, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[aw]; ok {
		r.succeeded[uid] = true
	}
}

// hasSucceeded reports whether the last object of a component had reported success before its deletion.
func (m *memory) hasSucceeded(aw types.UID, index int) (done bool) {
	m.withState(aw, func(r *workloadState) { done = r.succeeded[r.objects[index].uid] })
	return done
}

// forget drops the state of a deleted AppWrapper.
func (m *memory) forget(aw types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, aw)
}
