package modelmesh

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contents reads Secrets of users, of which the cache holds the metadata alone: one is read live when its version has moved, and
// what is kept of it is what derive makes of it.
type contents[T any] struct {
	// cached reads metadata from memory, live whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T

	mu    sync.Mutex
	known map[types.NamespacedName]content[T]
}

type content[T any] struct {
	uid     types.UID
	version string
	value   T
}

func newContents[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *contents[T] {
	return &contents[T]{cached: cached, live: live, derive: derive, known: map[types.NamespacedName]content[T]{}}
}

// get returns what derive makes of a Secret, and false when there is none.
func (c *contents[T]) get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	head := secretMetadata()
	err = c.cached.Get(ctx, name, head)
	if apierrors.IsNotFound(err) {
		c.forget(name)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading Secret %s from the cache: %w", name, err)
	}
	c.mu.Lock()
	known, ok := c.known[name]
	c.mu.Unlock()
	if ok && known.uid == head.UID && !newer(head.ResourceVersion, known.version) {
		return known.value, true, nil
	}
	secret := &corev1.Secret{}
	err = c.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) { // the cache will follow
		c.forget(name)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	value = c.derive(secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[name] = content[T]{uid: secret.UID, version: secret.ResourceVersion, value: value}
	return value, true, nil
}

func (c *contents[T]) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}

// leave forgets all Secrets of a namespace.
func (c *contents[T]) leave(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(name types.NamespacedName, _ content[T]) bool { return name.Namespace == namespace })
}

// newer tells whether the version of the cache is later than the one that was read; versions that cannot be compared are.
func newer(cached, known string) bool {
	order, err := resourceversion.CompareResourceVersion(cached, known)
	return err != nil || order > 0
}

func secretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(secretKind)
	return m
}
