package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// UIDMap stores a value for each object by its uid. It is safe for concurrent use, and its zero value is empty.
type UIDMap[T any] struct {
	mu     sync.Mutex
	values map[types.UID]T
}

// Get returns the value of an object, and whether there is one.
func (m *UIDMap[T]) Get(uid types.UID) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[uid]
	return value, ok
}

// Set stores the value of an object.
func (m *UIDMap[T]) Set(uid types.UID, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[types.UID]T{}
	}
	m.values[uid] = value
}

// Delete removes the value of an object.
func (m *UIDMap[T]) Delete(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, uid)
}
