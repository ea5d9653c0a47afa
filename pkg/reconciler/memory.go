package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory holds what a controller remembers of each object, by its uid, for as long as the process lives. The zero value is empty.
type Memory[T any] struct {
	mu  sync.Mutex
	all map[types.UID]T
}

// Get returns what is remembered, and whether anything is.
func (m *Memory[T]) Get(uid types.UID) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.all[uid]
	return value, ok
}

// Set remembers a value.
func (m *Memory[T]) Set(uid types.UID, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.UID]T{}
	}
	m.all[uid] = value
}

// Forget drops what is remembered of an object that is gone.
func (m *Memory[T]) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, uid)
}
