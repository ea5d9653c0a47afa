package modelmesh

import (
	"maps"
	"sync"
)

// Store keeps what one reconcile leaves for the next, for any number of workers. The zero value is empty. What is in it may be lost:
// a restart costs some reads.
type Store[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

// Get returns what is kept under a key, and whether anything is.
func (s *Store[K, V]) Get(key K) (value V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found = s.known[key]
	return value, found
}

// Set keeps a value and returns the one before.
func (s *Store[K, V]) Set(key K, value V) (before V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[K]V{}
	}
	before = s.known[key]
	s.known[key] = value
	return before
}

// Delete drops a key and returns what was kept under it.
func (s *Store[K, V]) Delete(key K) (before V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, found = s.known[key]
	delete(s.known, key)
	return before, found
}

// DeleteFunc drops the keys that gone selects.
func (s *Store[K, V]) DeleteFunc(gone func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key K, _ V) bool { return gone(key) })
}

// Len is how many keys there are.
func (s *Store[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}
