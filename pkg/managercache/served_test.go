package managercache

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

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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
	list.SetGroupVersionKind(capability.HTTPRoute.GroupVersion().WithKind("HTTPRouteList"))
	return list
}

func TestReadsFailWhenKindIsNotServed(t *testing.T) {
	optional := capability.NewSet(capability.HTTPRoute)
	c := &servedOnlyCache{unsyncedCache{}, runtime.NewScheme(), optional, func() capability.Set { return capability.NewSet(capability.Route) }}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, objectmeta.New(capability.HTTPRoute)); !meta.IsNoMatchError(err) {
		t.Errorf("Get returned error %v, want a no-match error", err)
	}
	if err := c.List(t.Context(), routes()); !meta.IsNoMatchError(err) {
		t.Errorf("List returned error %v, want a no-match error", err)
	}
}

func TestReadsOfServedKindWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := capability.NewSet(capability.HTTPRoute)
		c := &servedOnlyCache{unsyncedCache{}, clientgoscheme.Scheme, kinds, func() capability.Set { return kinds }}
		reads := map[string]func(context.Context) error{
			"optional kind": func(ctx context.Context) error {
				return c.Get(ctx, client.ObjectKey{Name: "x"}, objectmeta.New(capability.HTTPRoute))
			},
			"list of an optional kind": func(ctx context.Context) error { return c.List(ctx, routes()) },
			"built-in kind":            func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{Name: "x"}, &corev1.Secret{}) },
		}
		for name, read := range reads {
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- read(ctx) }()
			synctest.Wait()
			cancel()
			if err := <-result; !errors.Is(err, errTimeout) {
				t.Errorf("%s: got error %v, want that of the cache", name, err)
			}
		}
	})
}
