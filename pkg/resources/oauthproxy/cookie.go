package oauthproxy

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// KeyCookie is the Secret key of the cookie secret.
const KeyCookie = "cookie_secret"

// cookieBytes is the number of random bytes in a cookie secret.
const cookieBytes = 32

// sha1Bytes is the length of a SHA-1 digest.
const sha1Bytes = 20

// LoadOrGenerateCookie returns the stored cookie secret, or a new one if there is none. If known, the result of the last call, is
// set, it sends no request while the Secret is in the cache. Users rotate the cookie secret by deleting the Secret.
func LoadOrGenerateCookie(ctx context.Context, cached, apiReader client.Reader, key client.ObjectKey, known []byte) ([]byte, error) {
	metadata, err := objectmeta.Get(ctx, cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	if err != nil {
		return nil, err
	}
	if metadata != nil && len(known) > 0 {
		return known, nil
	}
	stored := &corev1.Secret{}
	if err := apiReader.Get(ctx, key, stored); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if cookie := stored.Data[KeyCookie]; len(cookie) > 0 {
		return cookie, nil
	}
	return NewCookie(), nil
}

// IsPredictable reports whether a cookie secret is a SHA-1 digest, as in Secrets of the CodeFlare operator. The digest depends only on the
// name of the RayCluster, and users of other namespaces can compute it.
func IsPredictable(cookie []byte) bool {
	digest, err := base64.StdEncoding.DecodeString(string(cookie))
	return err == nil && len(digest) == sha1Bytes
}

// NewCookie returns a random cookie secret in the encoding of the sidecar.
func NewCookie() []byte {
	random := make([]byte, cookieBytes)
	_, _ = rand.Read(random) // rand.Read never fails
	return base64.URLEncoding.AppendEncode(nil, random)
}
