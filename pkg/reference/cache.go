package reference

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// objectCache holds a value derived from each Secret or ConfigMap of users, of which the manager's cache stores metadata only. An object is
// read from the API server when its resourceVersion has changed. It is safe for concurrent use.
type objectCache[T any] struct {
	// cached reads metadata from the cache, live reads whole objects from the API server.
	cached, live client.Reader
	derive       func(client.Object) T
	entries      *cache.LRUExpireCache // cacheEntry by cacheKey
	reading      keymutex.KeyMutex     // several reconciles that need a changed object read it once
}

// maxEntries limits the memory of a cache. Beyond it, the objects that were not used for longest are read again.
const maxEntries = 1 << 16

// cacheKey identifies a Secret or ConfigMap.
type cacheKey struct {
	kind Kind
	client.ObjectKey
}

// cacheEntry is the value derived from one version of an object.
type cacheEntry[T any] struct {
	uid     types.UID
	version string
	value   T
}

func newObjectCache[T any](cached, live client.Reader, derive func(client.Object) T) *objectCache[T] {
	return &objectCache[T]{cached: cached, live: live, derive: derive, entries: cache.NewLRUExpireCache(maxEntries), reading: keymutex.NewHashed(0)}
}

// get returns the value derived from an object, or false if the object does not exist.
func (c *objectCache[T]) get(ctx context.Context, key cacheKey) (value T, found bool, err error) {
	metadata, err := capability.GetMetadata(ctx, c.cached, key.kind.gvk(), key.ObjectKey)
	if err != nil {
		return value, false, err
	}
	if metadata == nil {
		c.entries.Remove(key)
		return value, false, nil
	}
	c.reading.LockKey(key.String())
	defer func() { _ = c.reading.UnlockKey(key.String()) }() // it is locked
	stored, _ := c.entries.Get(key)
	if e, ok := stored.(cacheEntry[T]); ok && e.uid == metadata.UID && e.version == metadata.ResourceVersion {
		return e.value, true, nil
	}
	var object client.Object = &corev1.Secret{}
	if key.kind == ConfigMap {
		object = &corev1.ConfigMap{}
	}
	err = c.live.Get(ctx, key.ObjectKey, object)
	if apierrors.IsNotFound(err) { // the metadata is stale
		c.entries.Remove(key)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading %s %s: %w", key.kind, key.ObjectKey, err)
	}
	value = c.derive(object)
	c.entries.Add(key, cacheEntry[T]{object.GetUID(), object.GetResourceVersion(), value}, time.Duration(math.MaxInt64)) // never expires
	return value, true, nil
}

// SecretCache holds a value derived from each Secret. The Secret is read from the API server when its resourceVersion has changed.
type SecretCache[T any] struct{ secrets *objectCache[T] }

// NewSecretCache returns an empty SecretCache that stores the result of derive for each Secret.
func NewSecretCache[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *SecretCache[T] {
	return &SecretCache[T]{newObjectCache(cached, live, func(secret client.Object) T { return derive(secret.(*corev1.Secret)) })}
}

// Get returns the value derived from a Secret, or false if the Secret does not exist.
func (c *SecretCache[T]) Get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	return c.secrets.get(ctx, cacheKey{Secret, name})
}

// Forget removes the entries of a namespace.
func (c *SecretCache[T]) Forget(namespace string) {
	c.secrets.entries.RemoveAll(func(key any) bool { return key.(cacheKey).Namespace == namespace })
}
