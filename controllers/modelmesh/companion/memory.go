package companion

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what is remembered of each namespace or object between two passes. All of it can be lost.
type memory[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]*V
}

// of returns what is remembered, nothing at first. One worker at a time deals with a key.
func (m *memory[K, V]) of(key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[K]*V{}
	}
	if m.known[key] == nil {
		m.known[key] = new(V)
	}
	return m.known[key]
}

// peek returns a copy of what is remembered. Where several workers deal with a key, it goes with keep.
func (m *memory[K, V]) peek(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[key]; known != nil {
		return *known
	}
	return *new(V)
}

// keep replaces what is remembered.
func (m *memory[K, V]) keep(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[K]*V{}
	}
	m.known[key] = &value
}

// forget drops what is remembered and returns it; nil when that was nothing.
func (m *memory[K, V]) forget(key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := m.known[key]
	delete(m.known, key)
	return gone
}

// remembered is what is remembered of one namespace. No credential is among it but the key of cookies.
type remembered struct {
	// cookie is the key of the sidecar's cookies.
	cookie []byte
	// gathered are the versions of what the storage entries were made of, and entries the version of the Secret that held them then.
	gathered, entries string
	// certificate is the version of the Secret with a certificate that was found good until renewal.
	certificate string
	renewal     time.Time
	// told is what users were told last about each topic.
	told map[topic]string
}

// topic is a matter about which users are told.
type topic string

const (
	topicApply   topic = "apply"
	topicStorage topic = "storage"
)

// news notes what is said about a topic, and tells whether it differs from what was said last. Empty ends the matter.
func (k *remembered) news(about topic, text string) bool {
	before := k.told[about]
	if k.told == nil {
		k.told = map[topic]string{}
	}
	k.told[about] = text
	return text != "" && text != before
}

// published is what is remembered of one InferenceService.
type published struct {
	uid types.UID
	// told is what users were told last.
	told string
}

// trusted is what is remembered of the certificate of one namespace.
type trusted struct{ version, text string }
