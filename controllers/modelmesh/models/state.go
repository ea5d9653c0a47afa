package models

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// loadReason is the reason for LoadNow in the next call. A model that is not in memory is not a reason: an instance may have evicted it for
// other models, and loading all evicted models would cause endless evictions.
type loadReason int

const (
	loadReasonNone        loadReason = iota
	loadReasonRestart                // no cached state, as after a restart: a load in progress may be lost
	loadReasonPodsChanged            // the pods changed: the only loaded copy may be lost
	loadReasonSpecChanged
)

// modelState is the state of one model. It is lost on restart; the mesh is called again then.
type modelState struct {
	// requestKey identifies the request that result belongs to: model ID, UID of the resource and error of the spec.
	requestKey string
	result     callResult
	vmodel     vmodelStatus
	// dirty is true if the mesh changed since the last reconcile, podsChanged if the pods of the mesh changed.
	dirty, podsChanged bool
	// fromEtcd is true if the state was created for a key in etcd, and not for a resource.
	fromEtcd   bool
	loadReason loadReason
	// failures counts the failed or refused calls in a row. lastError is the redacted and clipped error of the last one.
	failures  int
	lastError string
	// nextCall is the time of the next call if no event triggers one earlier; zero for none. attempts is the number of such calls.
	nextCall time.Time
	attempts int
	// waitingSince is the start of runtimeGracePeriod; zero if it has not started.
	waitingSince time.Time
}

// onPodsChanged resets the backoff and requests a load of a model whose only copy may be lost.
func (s *modelState) onPodsChanged() {
	s.nextCall, s.attempts, s.waitingSince = time.Time{}, 0, time.Time{}
	s.loadReason = max(s.loadReason, loadReasonPodsChanged)
}

// maxFromEtcd limits the states per namespace that were created for keys in etcd: a namespace with its own etcd can write any number.
const maxFromEtcd = meshetcd.MaxKeys

// stateCache holds the state of each reconciled model, and of each model that may have to be deleted from the mesh.
type stateCache struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]modelState
	// fromEtcdCounts is the number of states with fromEtcd, by the namespace of their keys.
	fromEtcdCounts map[string]int
}

func newStateCache() *stateCache {
	return &stateCache{entries: map[types.NamespacedName]modelState{}, fromEtcdCounts: map[string]int{}}
}

func (c *stateCache) get(key types.NamespacedName) (modelState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, known := c.entries[key]
	return state, known
}

// update calls change with the state of a model, or with an empty state for an unknown model. It deletes the state if change returns false.
func (c *stateCache) update(key types.NamespacedName, change func(state *modelState, known bool) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, known := c.entries[key]
	wasFromEtcd := state.fromEtcd
	if change(&state, known) {
		c.entries[key] = state
	} else {
		state = modelState{}
		delete(c.entries, key)
	}
	switch {
	case state.fromEtcd && !wasFromEtcd:
		c.fromEtcdCounts[key.Namespace]++
	case wasFromEtcd && !state.fromEtcd:
		if c.fromEtcdCounts[key.Namespace]--; c.fromEtcdCounts[key.Namespace] == 0 {
			delete(c.fromEtcdCounts, key.Namespace)
		}
	}
}

// getAndClearDirty returns a state and clears dirty and podsChanged in the cache. Later events set them again.
func (c *stateCache) getAndClearDirty(key types.NamespacedName) (original modelState) {
	c.update(key, func(state *modelState, _ bool) bool {
		original = *state
		state.dirty, state.podsChanged = false, false
		return true
	})
	return original
}

// store stores a state. It keeps dirty and podsChanged of events since getAndClearDirty.
func (c *stateCache) store(key types.NamespacedName, state modelState) {
	c.update(key, func(cached *modelState, _ bool) bool {
		state.dirty, state.podsChanged, state.fromEtcd = cached.dirty, cached.podsChanged, cached.fromEtcd
		if *cached = state; cached.podsChanged {
			cached.onPodsChanged()
		}
		return true
	})
}

// deleteIfClean deletes the state of a model that was deleted from the mesh, unless the mesh changed since.
func (c *stateCache) deleteIfClean(key types.NamespacedName) {
	c.update(key, func(state *modelState, _ bool) bool { return state.dirty })
}

func (c *stateCache) delete(key types.NamespacedName) {
	c.update(key, func(*modelState, bool) bool { return false })
}

// markDirty sets dirty. Up to maxFromEtcd it creates states for unknown models: they may have to be deleted from the mesh.
func (c *stateCache) markDirty(key types.NamespacedName) {
	c.update(key, func(state *modelState, known bool) bool {
		state.dirty, state.fromEtcd = true, state.fromEtcd || !known
		return known || c.fromEtcdCounts[key.Namespace] < maxFromEtcd
	})
}

// markDirtyIfKnown sets dirty of a known model and reports whether the model is known.
func (c *stateCache) markDirtyIfKnown(key types.NamespacedName) (isKnown bool) {
	c.update(key, func(state *modelState, known bool) bool {
		state.dirty, isKnown = true, known
		return known
	})
	return isKnown
}

// markPodsChanged sets dirty and podsChanged of all models of a namespace, resets their backoff and returns their keys.
func (c *stateCache) markPodsChanged(namespace string) []types.NamespacedName {
	keys := c.keysOfNamespace(namespace)
	for _, key := range keys {
		c.update(key, func(state *modelState, known bool) bool {
			state.dirty, state.podsChanged = true, true
			state.onPodsChanged()
			return known
		})
	}
	return keys
}

func (c *stateCache) keysOfSource(source string) []types.NamespacedName {
	return c.keys(func(id string, _ types.NamespacedName) bool { return id == source })
}

// keysOfNamespace returns the keys of the models of a namespace, of all sources.
func (c *stateCache) keysOfNamespace(namespace string) []types.NamespacedName {
	return c.keys(func(_ string, name types.NamespacedName) bool { return name.Namespace == namespace })
}

func (c *stateCache) keys(matches func(source string, name types.NamespacedName) bool) (keys []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.entries {
		if matches(splitKey(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// modelKey returns the key of a model of a source. No source contains an underscore.
func modelKey(source string, name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: name.Namespace, Name: source + "_" + name.Name}
}

// splitKey returns the source and the name of a key.
func splitKey(key types.NamespacedName) (string, types.NamespacedName) {
	source, name, _ := strings.Cut(key.Name, "_")
	return source, types.NamespacedName{Namespace: key.Namespace, Name: name}
}
