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

// memory holds the state of AppWrappers in addition to the stored status and the cache. Losing it is harmless: it saves requests, and covers
// the delay of the cache.
type memory struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.UID]*workloadState // by the UID of the AppWrapper
}

// workloadState is the state of one AppWrapper.
type workloadState struct {
	objects  map[int]componentObject // by component index
	minReady map[int]int             // by component index
	// succeeded holds the UIDs of objects that reported success.
	succeeded map[types.UID]bool
	// deferred is the status of created components until it is stored; nil for none. Without it, as after a restart, the creation is repeated
	// and finds the objects.
	deferred []awv1beta2.AppWrapperComponentStatus
	refusal  creationRefusal
}

// creationRefusal is the reason why pods could not be created, and the time of its last read.
type creationRefusal struct {
	at   time.Time
	text string
}

// componentObject is the last object of a component.
type componentObject struct {
	uid       types.UID
	createdAt time.Time
	// adopted reports whether the object existed before the AppWrapper. Creation times show that too, unless both are in the same second.
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

// restoreDeferred sets the status of created components that is not stored yet, and forgets it once the AppWrapper is in another phase.
func (m *memory) restoreDeferred(aw *awv1beta2.AppWrapper) {
	m.withState(aw.UID, func(r *workloadState) {
		if aw.Status.Phase != awv1beta2.PhaseResuming || aw.DeletionTimestamp != nil {
			r.deferred = nil
		} else if len(r.deferred) == len(aw.Status.ComponentStatus) {
			aw.Status.ComponentStatus = (&awv1beta2.AppWrapperStatus{ComponentStatus: r.deferred}).DeepCopy().ComponentStatus
		}
	})
}

// component returns the last object of a component, and whether it has reported success.
func (m *memory) component(aw types.UID, index int) (object componentObject, succeeded bool) {
	m.withState(aw, func(r *workloadState) { object, succeeded = r.objects[index], r.succeeded[r.objects[index].uid] })
	return object, succeeded
}

// setObserved stores the UID of the object of a component.
func (m *memory) setObserved(aw types.UID, index int, uid types.UID) {
	m.withState(aw, func(r *workloadState) {
		if r.objects[index].uid != uid {
			r.objects[index] = componentObject{uid: uid}
		}
	})
}

// minReady returns the number of pods that a component needs to be ready, and false if it is not stored.
func (m *memory) minReady(aw types.UID, index int) (count int, ok bool) {
	m.withState(aw, func(r *workloadState) { count, ok = r.minReady[index] })
	return count, ok
}

// setSucceeded stores that an object reported success, if the AppWrapper is known.
func (m *memory) setSucceeded(aw, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[aw]; ok {
		r.succeeded[uid] = true
	}
}

// forget drops the state of a deleted AppWrapper.
func (m *memory) forget(aw types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, aw)
}
