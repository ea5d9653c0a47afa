package modelmesh

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// Store keeps what one reconcile leaves for the next, for any number of workers. The zero value is empty. What is in it may be lost:
// a restart costs some reads.
type SyncMap[K comparable, V any] struct {
	mu    sync.Mutex
	items map[K]V
}

// Get returns what is kept under a key, and whether anything is.
func (s *SyncMap[K, V]) Get(key K) (value V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found = s.items[key]
	return value, found
}

// Set keeps a value and returns the one before.
func (s *SyncMap[K, V]) Set(key K, value V) (before V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[K]V{}
	}
	before = s.items[key]
	s.items[key] = value
	return before
}

// Delete drops a key and returns what was kept under it.
func (s *SyncMap[K, V]) Delete(key K) (before V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, found = s.items[key]
	delete(s.items, key)
	return before, found
}

// DeleteFunc drops the keys that gone selects.
func (s *SyncMap[K, V]) DeleteFunc(gone func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.items, func(key K, _ V) bool { return gone(key) })
}

// Len is how many keys there are.
func (s *SyncMap[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Contents reads Secrets of users, of which the cache holds the metadata alone: one is read live when its version has moved, and
// what is kept of it is what derive makes of it.
type SecretCache[T any] struct {
	// cached reads metadata from memory, live whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T
	entries      SyncMap[types.NamespacedName, secretEntry[T]]
}

type secretEntry[T any] struct {
	uid             types.UID
	resourceVersion string
	value           T
}

// NewContents returns contents of which nothing is known.
func NewSecretCache[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *SecretCache[T] {
	return &SecretCache[T]{cached: cached, live: live, derive: derive}
}

// Get returns what derive makes of a Secret, and false when there is none.
func (c *SecretCache[T]) Get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	head, err := capability.GetMetadata(ctx, c.cached, corev1.SchemeGroupVersion.WithKind("Secret"), name)
	if err != nil {
		return value, false, err
	}
	if head == nil {
		c.entries.Delete(name)
		return value, false, nil
	}
	if known, ok := c.entries.Get(name); ok && known.uid == head.UID && !isNewer(head.ResourceVersion, known.resourceVersion) {
		return known.value, true, nil
	}
	secret := &corev1.Secret{}
	err = c.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) { // the cache will follow
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

// Forget drops all Secrets of a namespace.
func (c *SecretCache[T]) Forget(namespace string) {
	c.entries.DeleteFunc(func(name types.NamespacedName) bool { return name.Namespace == namespace })
}

// newer tells whether the version of the cache is later than the one that was read; versions that cannot be compared are.
func isNewer(cached, known string) bool {
	order, err := resourceversion.CompareResourceVersion(cached, known)
	return err != nil || order > 0
}

// References knows what Predictors refer to and does not exist: entries of the storage Secret, and claims. The controller of runtimes, which
// reads these anyway, notes it, and that of models reports it. The zero value is ready.
type MissingReferences struct {
	byNamespace SyncMap[string, map[string][]reference.Missing] // by namespace and Predictor
	onChange    func(namespace, name string)
}

// Of returns what a Predictor lacks; false says that nothing was noted of its namespace yet, as after a restart.
func (r *MissingReferences) Get(namespace, name string) ([]reference.Missing, bool) {
	all, known := r.byNamespace.Get(namespace)
	return all[name], known
}

// Set notes what the Predictors of a namespace lack, by their names. One caller at a time sets those of a namespace.
func (r *MissingReferences) Set(namespace string, missing map[string][]reference.Missing) {
	before, known := r.byNamespace.Get(namespace)
	r.byNamespace.Set(namespace, missing)
	if r.onChange == nil {
		return
	}
	if !known {
		r.onChange(namespace, "")
	}
	all := map[string][]reference.Missing{}
	maps.Copy(all, before)
	maps.Copy(all, missing)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(before[name], missing[name]) {
			r.onChange(namespace, name)
		}
	}
}

// Forget notes that nothing of a namespace is looked for any more.
func (r *MissingReferences) Forget(namespace string) {
	r.Set(namespace, nil)
	r.byNamespace.Delete(namespace)
}

// Subscribe names who is called for each Predictor whose references have changed, and without a name for all of a namespace of
// which nothing was known. It is called once, before the controllers start.
func (r *MissingReferences) Subscribe(changed func(namespace, name string)) { r.onChange = changed }
