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

// countingClient counts reads of whole objects, and fails them with liveErr, and reads of metadata with cachedErr, if set.
type countingClient struct {
	client.WithWatch
	live               int
	cachedErr, liveErr error
}

// newCountingClient returns a client with objects, which is used as the cache and as the API server.
func newCountingClient(objects ...client.Object) *countingClient {
	c := &countingClient{}
	inner := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	c.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.liveErr
			if _, isMetadata := obj.(*metav1.PartialObjectMetadata); isMetadata {
				err = c.cachedErr
			} else {
				c.live++
			}
			if err != nil {
				return err
			}
			return w.Get(ctx, key, obj, opts...)
		},
	})
	return c
}

func TestContentCacheReadsChangedSecrets(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "s"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "1"}, Data: map[string][]byte{"k": []byte("a")}}
	fakeClient := newCountingClient(secret)
	c := NewContentCache(fakeClient, fakeClient, func(s *corev1.Secret) string { return string(s.Data["k"]) })
	expect := func(description, want string, wantFound bool, reads int) {
		t.Helper()
		got, found, err := c.Get(t.Context(), name)
		if err != nil || found != wantFound || got != want || fakeClient.live != reads {
			t.Errorf("%s: got %q, %t, error %v after %d live reads, want %q, %t after %d", description, got, found, err, fakeClient.live, want, wantFound, reads)
		}
	}
	expect("first read", "a", true, 1)
	expect("unchanged", "a", true, 1)
	secret.Data["k"] = []byte("b")
	if err := fakeClient.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("changed", "b", true, 2)
	expect("unchanged after an update", "b", true, 2)
	fakeClient.liveErr = errors.New("connection refused")
	expect("unchanged while the API server fails", "b", true, 2)
	if err := fakeClient.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("deleted", "", false, 2)
	if n := countEntries(c); n != 0 {
		t.Errorf("got %d entries after the deletion, want none", n)
	}
}

func TestContentCacheReturnsReadErrors(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "s"}
	fakeClient := newCountingClient(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	c := NewContentCache(fakeClient, fakeClient, func(*corev1.Secret) int { return 1 })
	fakeClient.liveErr = errors.New("connection refused")
	if _, _, err := c.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), "ns/s") {
		t.Errorf("got error %v, want one that names the Secret", err)
	}
	fakeClient.liveErr, fakeClient.cachedErr = nil, errors.New("no cache")
	if _, _, err := c.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("got error %v, want that of the cache", err)
	}
}

func TestContentCacheForgetsNamespace(t *testing.T) {
	secret := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", UID: "1"}, Data: map[string][]byte{"k": []byte("a")}}
	}
	fakeClient := newCountingClient(secret("ns"), secret("other"))
	c := NewContentCache(fakeClient, fakeClient, func(s *corev1.Secret) string { return string(s.Data["k"]) })
	for _, namespace := range []string{"ns", "other"} {
		if _, found, err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "s"}); !found || err != nil {
			t.Fatal(namespace, err)
		}
	}
	if c.Forget("ns"); countEntries(c) != 1 {
		t.Errorf("got %d entries, want only that of the other namespace", countEntries(c))
	}
}

func countEntries[T any](c *ContentCache[T]) int { return len(c.entries.Keys()) }
