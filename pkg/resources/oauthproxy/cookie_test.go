package oauthproxy

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var secretKey = client.ObjectKey{Namespace: "ns", Name: "cookie"}

func secretOf(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}, Data: data}
}

// countingReader returns a client.Reader that counts requests, and returns readErr if it is set.
func countingReader(reads *int, readErr error, objects ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*reads++
			if readErr != nil {
				return readErr
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
}

func TestLoadOrGenerateCookie(t *testing.T) {
	readErr := errors.New("connection refused")
	existing := secretOf(map[string][]byte{KeyCookie: []byte("stored")})
	for name, c := range map[string]struct {
		objects      []client.Object
		known        string
		cached, live error
		want         string // empty for a new cookie secret
		requests     int
		wantErr      bool
	}{
		"no Secret, cookie unknown":       {requests: 1},
		"existing Secret, cookie known":   {objects: []client.Object{existing}, known: "known", want: "known"},
		"existing Secret, cookie unknown": {objects: []client.Object{existing}, want: "stored", requests: 1},
		"Secret deleted, cookie known":    {known: "known", requests: 1},
		"existing Secret without the key": {objects: []client.Object{secretOf(map[string][]byte{"other": []byte("x")})}, requests: 1},
		"cache error":                     {known: "known", cached: readErr, wantErr: true},
		"API server error":                {objects: []client.Object{existing}, live: readErr, requests: 1, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			var cached, live int
			got, err := LoadOrGenerateCookie(t.Context(), countingReader(&cached, c.cached, c.objects...), countingReader(&live, c.live, c.objects...), secretKey, []byte(c.known))
			if (err != nil) != c.wantErr || live != c.requests {
				t.Fatalf("got error %v, %d requests", err, live)
			}
			if c.wantErr {
				if !errors.Is(err, readErr) {
					t.Errorf("error %v does not wrap %v", err, readErr)
				}
				return
			}
			if c.want != "" {
				if string(got) != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				return
			}
			random, err := base64.URLEncoding.DecodeString(string(got))
			if err != nil || len(random) != 32 || string(got) == c.known {
				t.Errorf("new cookie secret %q has %d bytes, error %v", got, len(random), err)
			}
		})
	}
}

func TestCookiesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		seen[string(NewCookie())] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d of 20 cookie secrets differ", len(seen))
	}
}

func TestIsPredictable(t *testing.T) {
	for cookie, want := range map[string]bool{
		base64.StdEncoding.EncodeToString([]byte("twenty bytes of sha1")): true, string(NewCookie()): false, "": false, "a cookie secret of its user": false, "YQ==": false,
	} {
		if got := IsPredictable([]byte(cookie)); got != want {
			t.Errorf("%q: got %t, want %t", cookie, got, want)
		}
	}
}
