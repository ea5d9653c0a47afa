package modelmesh

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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

// SecretCache holds values derived from Secrets of users, of which the manager's cache stores metadata only. A Secret is read from the
// API server when its resourceVersion has changed.
type SecretCache[T any] struct {
	// cached reads metadata from the cache, live reads whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T
	entries      SyncMap[types.NamespacedName, secretEntry[T]]
}

type secretEntry[T any] struct {
	uid             types.UID
	resourceVersion string
	value           T
}

// NewSecretCache returns an empty SecretCache that stores the result of derive for each Secret.
func NewSecretCache[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *SecretCache[T] {
	return &SecretCache[T]{cached: cached, live: live, derive: derive}
}

// Get returns the value derived from a Secret, or false if the Secret does not exist.
func (c *SecretCache[T]) Get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	metadata, err := capability.GetMetadata(ctx, c.cached, corev1.SchemeGroupVersion.WithKind("Secret"), name)
	if err != nil {
		return value, false, err
	}
	if metadata == nil {
		c.entries.Delete(name)
		return value, false, nil
	}
	if entry, ok := c.entries.Get(name); ok && entry.uid == metadata.UID && !isNewer(metadata.ResourceVersion, entry.resourceVersion) {
		return entry.value, true, nil
	}
	secret := &corev1.Secret{}
	err = c.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) { // the cache is stale
		c.entries.Delete(name)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	value = c.derive(secret)
	c.entries.Set(name, secretEntry[T]{uid: secret.UID, resourceVersion: secret.ResourceVersion, value: value})
	return value, true, nil
}

// Forget removes the entries of a namespace.
func (c *SecretCache[T]) Forget(namespace string) {
	c.entries.DeleteFunc(func(name types.NamespacedName) bool { return name.Namespace == namespace })
}

// isNewer reports whether the cached resourceVersion is newer than the known one, or cannot be compared with it.
func isNewer(cached, known string) bool {
	order, err := resourceversion.CompareResourceVersion(cached, known)
	return err != nil || order > 0
}
