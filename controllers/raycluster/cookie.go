package raycluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// cookieBytes is the number of random bytes in the key of the sidecar's cookies.
const cookieBytes = 32

// cookie returns the key of the sidecar's cookies: the one that its Secret has, and a new one where there is none. It is
// read once in the life of the process, and again when the Secret is gone: who deletes it wants another key.
func (r *clusters) cookie(ctx context.Context, cluster *unstructured.Unstructured, c ray.Cluster) ([]byte, error) {
	known := r.memory.of(cluster)
	key := client.ObjectKey{Namespace: c.Namespace(), Name: c.Names().CookieSecret}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretGVK)
	err := r.cached.Get(ctx, key, head)
	if err == nil && len(known.cookie) > 0 {
		return known.cookie, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading metadata of Secret %s: %w", key, err)
	}
	stored := &corev1.Secret{}
	err = r.live.Get(ctx, key, stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if known.cookie = stored.Data[ray.KeyCookie]; len(known.cookie) == 0 {
		known.cookie = newCookie()
	}
	return known.cookie, nil
}

// newCookie writes random bytes in the form that the sidecar takes from its environment.
func newCookie() []byte {
	random := make([]byte, cookieBytes)
	_, _ = rand.Read(random) // it never fails
	return base64.URLEncoding.AppendEncode(nil, random)
}
