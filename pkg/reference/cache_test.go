package reference

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// countingReader counts reads of whole Secrets, and fails those that failCached and failLive select.
type countingReader struct {
	client.WithWatch
	cached, live int
	failCached   error
	failLive     error
}

// newCountingReader returns a client with objects, which serves as cache and as API server.
func newCountingReader(objects ...client.Object) *countingReader {
	c := &countingReader{}
	inner := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	c.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			fail := c.failLive
			if _, head := object.(*metav1.PartialObjectMetadata); head {
				c.cached++
				fail = c.failCached
			} else {
				c.live++
			}
			if fail != nil {
				return fail
			}
			return w.Get(ctx, key, object, opts...)
		},
	})
	return c
}

func TestSecretCacheReadsChangedSecrets(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "s"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "1"}, Data: map[string][]byte{"k": []byte("a")}}
	reader := newCountingReader(secret)
	c := NewSecretCache(reader, reader, func(s *corev1.Secret) string { return string(s.Data["k"]) })
	expect := func(description, want string, there bool, reads int) {
		t.Helper()
		got, found, err := c.Get(t.Context(), name)
		if err != nil || found != there || got != want || reader.live != reads {
			t.Errorf("%s: %q, %v, %v after %d live reads, want %q after %d", description, got, found, err, reader.live, want, reads)
		}
	}
	expect("first", "a", true, 1)
	expect("again", "a", true, 1)
	secret.Data["k"] = []byte("b")
	if err := reader.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("changed", "b", true, 2)
	expect("and again", "b", true, 2)
	reader.failLive = errors.New("away")
	expect("nothing moved, so nothing is read", "b", true, 2)
	if err := reader.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("gone", "", false, 2)
	if n := countEntries(c); n != 0 {
		t.Errorf("still known: %d", n)
	}
}

func TestSecretCacheReturnsReadErrors(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "s"}
	reader := newCountingReader(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	c := NewSecretCache(reader, reader, func(*corev1.Secret) int { return 1 })
	reader.failLive = errors.New("away")
	if _, _, err := c.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), "ns/s") {
		t.Errorf("error %v", err)
	}
	reader.failLive, reader.failCached = nil, errors.New("no cache")
	if _, _, err := c.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("error %v", err)
	}
}

func TestSecretCacheForgetsNamespace(t *testing.T) {
	secret := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", UID: "1"}, Data: map[string][]byte{"k": []byte("a")}}
	}
	reader := newCountingReader(secret("ns"), secret("other"))
	c := NewSecretCache(reader, reader, func(s *corev1.Secret) string { return string(s.Data["k"]) })
	for _, namespace := range []string{"ns", "other"} {
		if _, found, err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "s"}); !found || err != nil {
			t.Fatal(namespace, err)
		}
	}
	if c.Forget("ns"); countEntries(c) != 1 {
		t.Errorf("known %d", countEntries(c))
	}
}

func countEntries[T any](c *SecretCache[T]) int { return len(c.entries.Keys()) }
