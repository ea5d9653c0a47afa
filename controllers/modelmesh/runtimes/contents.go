package runtimes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// contents reads Secrets of users, of which the cache holds the metadata alone: one is read live when its version has moved, and
// what is kept of it is what derive makes of it.
type contents[T any] struct {
	// cached reads metadata from memory, live whole objects from the API server.
	cached, live client.Reader
	derive       func(*corev1.Secret) T
	known        modelmesh.Store[types.NamespacedName, content[T]]
}

type content[T any] struct {
	uid     types.UID
	version string
	value   T
}

func newContents[T any](cached, live client.Reader, derive func(*corev1.Secret) T) *contents[T] {
	return &contents[T]{cached: cached, live: live, derive: derive}
}

// get returns what derive makes of a Secret, and false when there is none.
func (c *contents[T]) get(ctx context.Context, name types.NamespacedName) (value T, found bool, err error) {
	head := modelmesh.Metadata(secretKind)
	err = c.cached.Get(ctx, name, head)
	if apierrors.IsNotFound(err) {
		c.known.Delete(name)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading Secret %s from the cache: %w", name, err)
	}
	if known, ok := c.known.Get(name); ok && known.uid == head.UID && !newer(head.ResourceVersion, known.version) {
		return known.value, true, nil
	}
	secret := &corev1.Secret{}
	err = c.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) { // the cache will follow
		c.known.Delete(name)
		return value, false, nil
	}
	if err != nil {
		return value, false, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	value = c.derive(secret)
	c.known.Set(name, content[T]{uid: secret.UID, version: secret.ResourceVersion, value: value})
	return value, true, nil
}

// cleanUp forgets all Secrets of a namespace.
func (c *contents[T]) cleanUp(namespace string) {
	c.known.DeleteFunc(func(name types.NamespacedName) bool { return name.Namespace == namespace })
}

// newer tells whether the version of the cache is later than the one that was read; versions that cannot be compared are.
func newer(cached, known string) bool {
	order, err := resourceversion.CompareResourceVersion(cached, known)
	return err != nil || order > 0
}
