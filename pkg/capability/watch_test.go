package capability

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// fakeCache is a cache that counts the running informers, and all informers that were started.
type fakeCache struct {
	informertest.FakeInformers
	unsynced bool // informers never sync, like those of a removed kind

	mu             sync.Mutex
	running, total int
	requests       []client.Object
}

func (c *fakeCache) GetInformer(ctx context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.mu.Lock()
	c.requests = append(c.requests, obj)
	c.running++
	c.total++
	c.mu.Unlock()
	if c.unsynced {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &controllertest.FakeInformer{}, nil
}

func (c *fakeCache) RemoveInformer(context.Context, client.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	return nil
}

func (c *fakeCache) expectInformers(t *testing.T, running, total int) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != running || c.total != total {
		t.Errorf("got %d running of %d started informers, want %d of %d", c.running, c.total, running, total)
	}
}

// newController returns a controller of controller-runtime that is not started.
func newController(t *testing.T, sources ...source.Source) controller.Controller {
	t.Helper()
	c, err := controller.NewUnmanaged("test", controller.Options{
		SkipNameValidation: new(true),
		Logger:             logr.Discard(),
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func startController(t *testing.T, c controller.Controller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// fakeAPIServer adds and removes kinds in discovery and the CustomResourceDefinitions.
type fakeAPIServer struct {
	d       *fakeDiscovery
	cluster *fakeCluster
}

func (c fakeAPIServer) addKind(k schema.GroupVersionKind) {
	c.d.serve(k)
	c.cluster.create(crdName(k))
	advance(time.Second)
}

func (c fakeAPIServer) removeKind(k schema.GroupVersionKind) {
	c.d.remove(k)
	c.cluster.remove(crdName(k))
	advance(time.Second)
}

func TestKindStartsAndStops(t *testing.T) {
	for name, object := range map[string]client.Object{"metadata": nil, "typed": &routev1.Route{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, informerCache := fakeAPIServer{newDiscovery(), newCluster(t)}, &fakeCache{}
				w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
				defer startController(t, newController(t, w.Kind(informerCache, Route, object, &handler.EnqueueRequestForObject{})))() // starts before the Watcher
				run(t, w)
				informerCache.expectInformers(t, 0, 0)
				for round := range 3 {
					env.addKind(Route)
					informerCache.expectInformers(t, 1, round+1)
					env.removeKind(Route)
					informerCache.expectInformers(t, 0, round+1)
				}
				want := client.Object(objectmeta.New(Route))
				if object != nil {
					want = object
				}
				for _, requested := range informerCache.requests {
					if requested != object && requested.GetObjectKind().GroupVersionKind() != want.GetObjectKind().GroupVersionKind() {
						t.Errorf("unexpected informer for %T %s", requested, requested.GetObjectKind().GroupVersionKind())
					}
				}
			})
		})
	}
}

func TestKindServedWhenSourceIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, informerCache := fakeAPIServer{newDiscovery(), newCluster(t)}, &fakeCache{}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		env.addKind(HTTPRoute)
		c := newController(t, w.Kind(informerCache, HTTPRoute, nil, &handler.EnqueueRequestForObject{}))
		informerCache.expectInformers(t, 0, 0)
		stop := startController(t, c)
		informerCache.expectInformers(t, 1, 1)

		// The source of a stopped controller is not started again.
		stop()
		env.removeKind(HTTPRoute)
		env.addKind(HTTPRoute)
		informerCache.expectInformers(t, 1, 1)
	})
}

func TestKindServedAfterSourceIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, informerCache := fakeAPIServer{newDiscovery(), newCluster(t)}, &fakeCache{}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		c := newController(t, w.Kind(informerCache, HTTPRoute, nil, &handler.EnqueueRequestForObject{}))
		env.addKind(HTTPRoute)
		env.removeKind(HTTPRoute)
		env.addKind(HTTPRoute)
		informerCache.expectInformers(t, 0, 0)
		defer startController(t, c)()
		informerCache.expectInformers(t, 1, 1) // one informer, although the kind was added twice
	})
}

// Removing a kind while its informer syncs blocks neither notifications nor the start of the controller, and leaks no goroutine: the synctest
// bubble fails on blocked goroutines.
func TestKindRemovedDuringSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, recorder, informerCache := fakeAPIServer{newDiscovery(), newCluster(t)}, &changes{}, &fakeCache{unsynced: true}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		w.Subscribe(t.Context(), recorder.add)
		defer startController(t, newController(t, w.Kind(informerCache, HTTPRoute, nil, &handler.EnqueueRequestForObject{})))()
		run(t, w)
		env.addKind(HTTPRoute)
		informerCache.expectInformers(t, 1, 1)
		env.removeKind(HTTPRoute)
		advance(time.Minute)
		informerCache.expectInformers(t, 0, 1)
		if recorder.len() != 2 {
			t.Errorf("got %d notifications, want 2", recorder.len())
		}
	})
}
