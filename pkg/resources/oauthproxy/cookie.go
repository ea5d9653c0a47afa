package oauthproxy

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// KeyCookie is the key of the Secret with the key of the sidecar's cookies.
const KeyCookie = "cookie_secret"

// cookieBytes is the number of random bytes in the key of the sidecar's cookies.
const cookieBytes = 32

// sha1Bytes is the length of a SHA-1 digest.
const sha1Bytes = 20

// Cookie returns the key of the sidecar's cookies: the one that its Secret has, and a new one where there is none. Known is what
// was returned before, or nothing; with it no request is sent while the Secret exists, which cached must know as metadata. Who
// deletes the Secret wants another key. Errors are those of the API server.
func EnsureCookie(ctx context.Context, cached, live client.Reader, key client.ObjectKey, known []byte) ([]byte, error) {
	head, err := capability.GetMetadata(ctx, cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	if err != nil {
		return nil, err
	}
	if head != nil && len(known) > 0 {
		return known, nil
	}
	stored := &corev1.Secret{}
	if err := live.Get(ctx, key, stored); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if cookie := stored.Data[KeyCookie]; len(cookie) > 0 {
		return cookie, nil
	}
	return NewCookie(), nil
}

// Computed reports whether a key has the form of those of the CodeFlare operator, a SHA-1 digest: that made the same key for all clusters of
// one name, so that users of other namespaces may know it.
func IsPredictable(key []byte) bool {
	digest, err := base64.StdEncoding.DecodeString(string(key))
	return err == nil && len(digest) == sha1Bytes
}

// NewCookie writes random bytes in the form that the sidecar takes from its environment.
func NewCookie() []byte {
	random := make([]byte, cookieBytes)
	_, _ = rand.Read(random) // it never fails
	return base64.URLEncoding.AppendEncode(nil, random)
}
