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

var seal = client.ObjectKey{Namespace: "ns", Name: "seal"}

func secretOf(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: seal.Namespace, Name: seal.Name}, Data: data}
}

// counting is a client.Reader that counts requests and may fail.
func counting(reads *int, fail error, objects ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*reads++
			if fail != nil {
				return fail
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
}

func TestEnsureCookie(t *testing.T) {
	broken := errors.New("no API server")
	good := secretOf(map[string][]byte{KeyCookie: []byte("theirs")})
	for name, c := range map[string]struct {
		objects      []client.Object
		known        string
		cached, live error
		want         string // "" for a new one
		requests     int
		fails        bool
	}{
		"no Secret, not in memory":        {requests: 1},
		"existing Secret, key known":      {objects: []client.Object{good}, known: "mine", want: "mine"},
		"existing Secret, key unknown":    {objects: []client.Object{good}, want: "theirs", requests: 1},
		"deleted, in memory":              {known: "mine", requests: 1},
		"existing Secret without the key": {objects: []client.Object{secretOf(map[string][]byte{"other": []byte("x")})}, requests: 1},
		"the cache fails":                 {known: "mine", cached: broken, fails: true},
		"the API server fails":            {objects: []client.Object{good}, live: broken, requests: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var cached, live int
			got, err := EnsureCookie(t.Context(), counting(&cached, c.cached, c.objects...), counting(&live, c.live, c.objects...), seal, []byte(c.known))
			if (err != nil) != c.fails || live != c.requests {
				t.Fatalf("error %v, %d requests", err, live)
			}
			if c.fails {
				if !errors.Is(err, broken) {
					t.Errorf("error %v hides its cause", err)
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
				t.Errorf("a new key %q of %d bytes, error %v", got, len(random), err)
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
		t.Errorf("%d different keys of 20", len(seen))
	}
}

func TestIsPredictable(t *testing.T) {
	for key, want := range map[string]bool{
		base64.StdEncoding.EncodeToString([]byte("twenty bytes of sha1")): true, string(NewCookie()): false, "": false, "a key of its user": false, "YQ==": false,
	} {
		if got := IsPredictable([]byte(key)); got != want {
			t.Errorf("%q: got %t, want %t", key, got, want)
		}
	}
}
