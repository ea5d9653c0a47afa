package modelmesh

import (
	"maps"
	"sync"
)

// SyncMap is a map for concurrent use. The zero value is empty. It holds state that is safe to lose: after a restart it is read again.
type SyncMap[K comparable, V any] struct {
	mu    sync.Mutex
	items map[K]V
}

// Get returns the value of a key and reports whether it is present.
func (s *SyncMap[K, V]) Get(key K) (value V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found = s.items[key]
	return value, found
}

// Set stores a value and returns the previous one.
func (s *SyncMap[K, V]) Set(key K, value V) (previous V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[K]V{}
	}
	previous = s.items[key]
	s.items[key] = value
	return previous
}

// Delete removes a key and returns its value.
func (s *SyncMap[K, V]) Delete(key K) (previous V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	previous, found = s.items[key]
	delete(s.items, key)
	return previous, found
}

// DeleteFunc removes the keys for which remove returns true.
func (s *SyncMap[K, V]) DeleteFunc(remove func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.items, func(key K, _ V) bool { return remove(key) })
}

// Len returns the number of keys.
func (s *SyncMap[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}
