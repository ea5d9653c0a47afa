package reference

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// SecretCache holds values derived from Secrets of users, of which the manager's cache stores metadata only. A Secret is read from the
// API server when its resourceVersion has changed.
type SecretCache[T any] struct {
	// cached reads metadata from the cache, live reads whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T
	entries      sync.Map // secretEntry by the name of the Secret
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
	metadata, err := capability.GetMetadata(ctx, c.cached, Secret.gvk(), name)
	if err != nil {
		return value, false, err
	}
	if metadata == nil {
		c.entries.Delete(name)
		return value, false, nil
	}
	stored, _ := c.entries.Load(name)
	if entry, ok := stored.(secretEntry[T]); ok && entry.uid == metadata.UID && !isNewer(metadata.ResourceVersion, entry.resourceVersion) {
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
	c.entries.Store(name, secretEntry[T]{uid: secret.UID, resourceVersion: secret.ResourceVersion, value: value})
	return value, true, nil
}

// Forget removes the entries of a namespace.
func (c *SecretCache[T]) Forget(namespace string) {
	c.entries.Range(func(key, _ any) bool {
		if name, ok := key.(types.NamespacedName); ok && name.Namespace == namespace {
			c.entries.Delete(key)
		}
		return true
	})
}

// isNewer reports whether the cached resourceVersion is newer than the known one, or cannot be compared with it.
func isNewer(cached, known string) bool {
	order, err := resourceversion.CompareResourceVersion(cached, known)
	return err != nil || order > 0
}
