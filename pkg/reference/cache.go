package reference

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// ContentCache holds values derived from Secrets and ConfigMaps of users. The manager's cache stores only their metadata. An object is
// read from the API server when its resourceVersion has changed. A ContentCache is safe for concurrent use.
type ContentCache[T any] struct {
	// cached reads metadata from the cache, live reads whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T
	entries      *cache.LRUExpireCache // cacheEntry by cacheKey
}

// maxEntries limits the memory of a cache. Beyond it, the least recently used objects are read again.
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

// NewContentCache returns an empty ContentCache that stores the result of derive for each object. A ConfigMap is passed to it as a Secret
// with the same metadata and data.
func NewContentCache[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *ContentCache[T] {
	return &ContentCache[T]{cached: cached, live: live, derive: derive, entries: cache.NewLRUExpireCache(maxEntries)}
}

// Get returns the value derived from a Secret, or false if the Secret does not exist.
func (c *ContentCache[T]) Get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	return c.get(ctx, cacheKey{Secret, name})
}

// get returns the value derived from an object, or false if the object does not exist.
func (c *ContentCache[T]) get(ctx context.Context, key cacheKey) (value T, found bool, err error) {
	metadata, err := objectmeta.Get(ctx, c.cached, key.kind.gvk(), key.ObjectKey)
	if err != nil {
		return value, false, err
	}
	if metadata == nil {
		c.entries.Remove(key)
		return value, false, nil
	}
	stored, _ := c.entries.Get(key)
	if e, ok := stored.(cacheEntry[T]); ok && e.uid == metadata.UID && e.version == metadata.ResourceVersion {
		return e.value, true, nil
	}
	object, err := c.read(ctx, key)
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

// read reads a Secret, or a ConfigMap as a Secret, from the API server.
func (c *ContentCache[T]) read(ctx context.Context, key cacheKey) (*corev1.Secret, error) {
	if key.kind == Secret {
		secret := &corev1.Secret{}
		return secret, c.live.Get(ctx, key.ObjectKey, secret)
	}
	configMap := &corev1.ConfigMap{}
	err := c.live.Get(ctx, key.ObjectKey, configMap)
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for k, v := range configMap.Data {
		data[k] = []byte(v)
	}
	maps.Copy(data, configMap.BinaryData)
	return &corev1.Secret{ObjectMeta: configMap.ObjectMeta, Data: data}, err
}

// Forget removes the entries of a namespace.
func (c *ContentCache[T]) Forget(namespace string) {
	c.entries.RemoveAll(func(key any) bool { return key.(cacheKey).Namespace == namespace })
}
