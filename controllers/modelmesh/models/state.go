package models

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// callResult is the result of the last call about a model.
type callResult int

const (
	notCalled      callResult = iota
	statusReceived            // the mesh returned the status of the model
	noAddress                 // the mesh has no ready pod
	idConflict                // the ID belongs to another source
	specMismatch              // the mesh has a model with this ID and other attributes
)

// loadReason is the reason for LoadNow in the next call. A model that is not in memory is not a reason: an instance may have evicted it for other
// models, and loading all evicted models would cause endless evictions.
type loadReason int

const (
	loadReasonNone        loadReason = iota
	loadReasonRestart                // no cached state, as after a restart: a load in progress may be lost
	loadReasonPodsChanged            // the pods changed: the only loaded copy may be lost
	loadReasonSpecChanged
)

// modelState is the state of one model. It is lost on restart; the mesh is called again then.
type modelState struct {
	// requestKey identifies the request of the result: model ID, UID of the resource and error of the spec.
	requestKey string
	result     callResult
	info       *meshpb.VModelStatusInfo
	// dirty reports whether the mesh changed since the last call, podsChanged whether its pods did.
	dirty, podsChanged bool
	// fromEtcd reports whether the state was created for a key in etcd, and not for a resource.
	fromEtcd   bool
	loadReason loadReason
	// failures counts the calls in a row that failed, the last one with lastError.
	failures  int
	lastError string
	// nextCall is the time of the next call without an event, after attempts calls; zero for no call.
	nextCall time.Time
	attempts int
	// waitingSince is the time since which the namespace has a runtime for the model that the mesh does not know yet; zero for no runtime.
	waitingSince time.Time
}

// onPodsChanged resets the backoff and requests a load of a model whose only copy may be lost.
func (e *modelState) onPodsChanged() {
	e.nextCall, e.attempts, e.waitingSince = time.Time{}, 0, time.Time{}
	e.loadReason = max(e.loadReason, loadReasonPodsChanged)
}

// maxFromEtcd limits the states per namespace that were created for keys in etcd: a namespace with its own etcd can write any number.
const maxFromEtcd = meshetcd.MaxKeys

// stateCache holds the state of each existing model, and of each model that may have to be deleted from the mesh.
type stateCache struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]modelState
	// fromEtcd is the number of states with fromEtcd, by the namespace of their keys.
	fromEtcd map[string]int
}

func newStateCache() *stateCache {
	return &stateCache{entries: map[types.NamespacedName]modelState{}, fromEtcd: map[string]int{}}
}

func (m *stateCache) get(key types.NamespacedName) (modelState, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[key]
	return e, known
}

// update changes the state of a model, which is empty for an unknown model. It deletes the state if change returns false.
func (m *stateCache) update(key types.NamespacedName, change func(e *modelState, known bool) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[key]
	wasFromEtcd := e.fromEtcd
	if change(&e, known) {
		m.entries[key] = e
	} else {
		e = modelState{}
		delete(m.entries, key)
	}
	switch {
	case e.fromEtcd && !wasFromEtcd:
		m.fromEtcd[key.Namespace]++
	case wasFromEtcd && !e.fromEtcd:
		if m.fromEtcd[key.Namespace]--; m.fromEtcd[key.Namespace] == 0 {
			delete(m.fromEtcd, key.Namespace)
		}
	}
}

// getAndClearDirty returns a state and clears dirty and podsChanged in the cache. Later events set them again.
func (m *stateCache) getAndClearDirty(key types.NamespacedName) (original modelState) {
	m.update(key, func(e *modelState, _ bool) bool {
		original = *e
		e.dirty, e.podsChanged = false, false
		return true
	})
	return original
}

// store stores a state. It keeps dirty and podsChanged of events since getAndClearDirty.
func (m *stateCache) store(key types.NamespacedName, state modelState) {
	m.update(key, func(e *modelState, _ bool) bool {
		state.dirty, state.podsChanged, state.fromEtcd = e.dirty, e.podsChanged, e.fromEtcd
		if *e = state; e.podsChanged {
			e.onPodsChanged()
		}
		return true
	})
}

// deleteIfClean deletes the state of a model that was deleted from the mesh, unless the mesh changed since.
func (m *stateCache) deleteIfClean(key types.NamespacedName) {
	m.update(key, func(e *modelState, _ bool) bool { return e.dirty })
}

func (m *stateCache) delete(key types.NamespacedName) {
	m.update(key, func(*modelState, bool) bool { return false })
}

// markDirty sets dirty. It creates the state of an unknown model, which may have to be deleted from the mesh.
func (m *stateCache) markDirty(key types.NamespacedName) {
	m.update(key, func(e *modelState, known bool) bool {
		e.dirty, e.fromEtcd = true, e.fromEtcd || !known
		return known || m.fromEtcd[key.Namespace] < maxFromEtcd
	})
}

// markDirtyIfKnown sets dirty of a known model and reports whether the model is known.
func (m *stateCache) markDirtyIfKnown(key types.NamespacedName) (isKnown bool) {
	m.update(key, func(e *modelState, known bool) bool {
		e.dirty, isKnown = true, known
		return known
	})
	return isKnown
}

// markPodsChanged sets dirty and podsChanged of all models of a namespace, resets their backoff and returns their keys.
func (m *stateCache) markPodsChanged(namespace string) []types.NamespacedName {
	keys := m.keysOfNamespace(namespace)
	for _, key := range keys {
		m.update(key, func(e *modelState, known bool) bool {
			e.dirty, e.podsChanged = true, true
			e.onPodsChanged()
			return known
		})
	}
	return keys
}

func (m *stateCache) keysOfSource(source string) []types.NamespacedName {
	return m.keys(func(id string, _ types.NamespacedName) bool { return id == source })
}

// keysOfNamespace returns the keys of the models of a namespace, of all sources.
func (m *stateCache) keysOfNamespace(namespace string) []types.NamespacedName {
	return m.keys(func(_ string, name types.NamespacedName) bool { return name.Namespace == namespace })
}

func (m *stateCache) keys(matches func(source string, name types.NamespacedName) bool) (keys []types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.entries {
		if matches(splitKey(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// modelKey returns the key of a model of a source. Neither sources nor namespaces contain an underscore.
func modelKey(source string, name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: source + "_" + name.Namespace, Name: name.Name}
}

// splitKey returns the source and the name of a key.
func splitKey(key types.NamespacedName) (string, types.NamespacedName) {
	source, namespace, _ := strings.Cut(key.Namespace, "_")
	return source, types.NamespacedName{Namespace: namespace, Name: key.Name}
}
