package appwrapper

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// creationLag is how long after a creation an object may be absent from the cache.
const creationLag = 5 * time.Second

// memory holds state of AppWrappers that neither their status nor the cache contains. This state saves requests, compensates
// for the delay of the cache, and keeps the success of deleted components. It is lost when the manager restarts.
type memory struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	states map[types.UID]*workloadState // by the UID of the AppWrapper
}

// workloadState is the state of one AppWrapper.
type workloadState struct {
	objects  map[int]componentObject // by component index
	minReady map[int]int             // by component index
	// succeeded holds the UIDs of objects that reported success.
	succeeded map[types.UID]bool
	// deferred is the status of created components until it is stored; nil for none. Without it, as after a restart, the creation is repeated
	// and finds the objects.
	deferred        []awv1beta2.AppWrapperComponentStatus
	creationFailure creationFailure
}

// creationFailure is the reason why pods could not be created, as Events stated it at the time of the last read.
type creationFailure struct {
	readAt  time.Time
	message string
}

// componentObject is the last object of a component.
type componentObject struct {
	uid       types.UID
	createdAt time.Time
	// adopted reports whether the object was adopted. It may be older than the AppWrapper even if both have the same creation time.
	adopted bool
}

// withState calls fn with the state of an AppWrapper, under the lock.
func (m *memory) withState(owner types.UID, fn func(*workloadState)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, ok := m.states[owner]
	if !ok {
		state = &workloadState{objects: map[int]componentObject{}, minReady: map[int]int{}, succeeded: map[types.UID]bool{}}
		m.states[owner] = state
	}
	fn(state)
}

// setCreated stores the object that was created or adopted for a component.
func (m *memory) setCreated(owner types.UID, index int, uid types.UID, adopted bool) {
	m.withState(owner, func(state *workloadState) {
		state.objects[index] = componentObject{uid: uid, createdAt: m.clock.Now(), adopted: adopted}
	})
}

// restoreDeferred sets the status of created components that is not stored yet, and drops that status once the AppWrapper leaves Resuming
// or is terminating.
func (m *memory) restoreDeferred(aw *awv1beta2.AppWrapper) {
	m.withState(aw.UID, func(state *workloadState) {
		if aw.Status.Phase != awv1beta2.PhaseResuming || aw.DeletionTimestamp != nil {
			state.deferred = nil
		} else if len(state.deferred) == len(aw.Status.ComponentStatus) {
			aw.Status.ComponentStatus = (&awv1beta2.AppWrapperStatus{ComponentStatus: state.deferred}).DeepCopy().ComponentStatus
		}
	})
}

// component returns the last object of a component, and whether it has reported success.
func (m *memory) component(owner types.UID, index int) (object componentObject, succeeded bool) {
	m.withState(owner, func(s *workloadState) { object, succeeded = s.objects[index], s.succeeded[s.objects[index].uid] })
	return object, succeeded
}

// setObserved stores the UID of the object of a component.
func (m *memory) setObserved(owner types.UID, index int, uid types.UID) {
	m.withState(owner, func(state *workloadState) {
		if state.objects[index].uid != uid {
			state.objects[index] = componentObject{uid: uid}
		}
	})
}

// minReady returns the number of pods that a component needs to be ready, and false if it is not stored.
func (m *memory) minReady(owner types.UID, index int) (count int, ok bool) {
	m.withState(owner, func(state *workloadState) { count, ok = state.minReady[index] })
	return count, ok
}

// setSucceeded stores that an object reported success, if the AppWrapper is known.
func (m *memory) setSucceeded(owner, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if state, ok := m.states[owner]; ok {
		state.succeeded[uid] = true
	}
}

// forget drops the state of a deleted AppWrapper.
func (m *memory) forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, owner)
}
