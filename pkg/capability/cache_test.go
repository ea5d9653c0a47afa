package capability

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// unsyncedCache is a cache whose informers never sync.
type unsyncedCache struct{ cache.Cache }

var errTimeout = errors.New("the informer did not sync")

func (unsyncedCache) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return errTimeout
}

func (unsyncedCache) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return errTimeout
}

func routes() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(HTTPRoute.GroupVersion().WithKind("HTTPRouteList"))
	return list
}

func TestReadsFailWhenKindIsNotServed(t *testing.T) {
	reads := map[string]func(context.Context, client.Reader) error{
		"get": func(ctx context.Context, c client.Reader) error {
			return c.Get(ctx, client.ObjectKey{Name: "x"}, objectmeta.New(HTTPRoute))
		},
		"list": func(ctx context.Context, c client.Reader) error { return c.List(ctx, routes()) },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := fakeAPIServer{newDiscovery(), newCluster(t)}
				w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
				run(t, w)
				c := &servedOnlyCache{unsyncedCache{}, runtime.NewScheme(), w}
				if err := read(t.Context(), c); !meta.IsNoMatchError(err) {
					t.Errorf("got error %v for a kind that is not served, want a no-match error", err)
				}
				env.addKind(HTTPRoute)
				env.removeKind(HTTPRoute)
				if err := read(t.Context(), c); !meta.IsNoMatchError(err) {
					t.Errorf("got error %v for a removed kind, want a no-match error", err)
				}
			})
		})
	}
}

func TestReadsOfServedKindWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Discovery: newDiscovery(HTTPRoute), Kinds: kinds})
		c := &servedOnlyCache{unsyncedCache{}, clientgoscheme.Scheme, w}
		for _, object := range []client.Object{objectmeta.New(HTTPRoute), &corev1.Secret{}} {
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- c.Get(ctx, client.ObjectKey{Name: "x"}, object) }()
			synctest.Wait()
			cancel()
			if err := <-result; !errors.Is(err, errTimeout) {
				t.Errorf("%T: %v, want the error of the cache", object, err)
			}
		}
	})
}
