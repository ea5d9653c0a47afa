package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// UIDMap stores a value for each object by its uid. It is safe for concurrent use, and its zero value is empty.
type UIDMap[T any] struct{ values sync.Map }

// Get returns the value of an object, and whether there is one.
func (m *UIDMap[T]) Get(uid types.UID) (T, bool) {
	stored, _ := m.values.Load(uid)
	value, ok := stored.(T)
	return value, ok
}

// Set stores the value of an object.
func (m *UIDMap[T]) Set(uid types.UID, value T) { m.values.Store(uid, value) }

// Delete removes the value of an object.
func (m *UIDMap[T]) Delete(uid types.UID) { m.values.Delete(uid) }
