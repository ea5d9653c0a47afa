package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// SyncMap is a map for concurrent use. The zero value is empty. Use it only for state whose loss in a restart is harmless.
type SyncMap[K comparable, V any] struct{ items sync.Map }

// Get returns the value of a key and reports whether it is present.
func (s *SyncMap[K, V]) Get(key K) (value V, found bool) {
	stored, _ := s.items.Load(key)
	value, found = stored.(V)
	return value, found
}

// Set stores a value and returns the previous one.
func (s *SyncMap[K, V]) Set(key K, value V) (previous V) {
	stored, _ := s.items.Swap(key, value)
	previous, _ = stored.(V)
	return previous
}

// Delete removes a key and returns its value.
func (s *SyncMap[K, V]) Delete(key K) (previous V, found bool) {
	stored, _ := s.items.LoadAndDelete(key)
	previous, found = stored.(V)
	return previous, found
}

// UIDMap stores a value for each object by its uid.
type UIDMap[T any] = SyncMap[types.UID, T]
