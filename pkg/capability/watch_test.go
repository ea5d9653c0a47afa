package capability

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// sources counts how many sources run and how many were started in all.
type sources struct {
	mu             sync.Mutex
	running, total int
	err            error
}

func (s *sources) build() source.Source {
	return source.Func(func(ctx context.Context, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil {
			return s.err
		}
		s.running++
		s.total++
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
		})
		return nil
	})
}

func (s *sources) want(t *testing.T, running, total int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != running || s.total != total {
		t.Errorf("%d sources run of %d started, want %d of %d", s.running, s.total, running, total)
	}
}

// newController returns a controller of controller-runtime that is not started.
func newController(t *testing.T) controller.Controller {
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
	return c
}

func start(t *testing.T, c controller.Controller) (stop func()) {
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

// comeAndGo is a fake API server, which adds and removes a kind in discovery and among the definitions.
type comeAndGo struct {
	d       *fakeDiscovery
	cluster *fakeCluster
}

func (c comeAndGo) come(k schema.GroupVersionKind) {
	c.d.serve(k)
	c.cluster.create(definitionName(k))
	pass(time.Second)
}

func (c comeAndGo) goAway(k schema.GroupVersionKind) {
	c.d.withdraw(k)
	c.cluster.remove(definitionName(k))
	pass(time.Second)
}

func TestWatchStartsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := comeAndGo{newDiscovery(), newCluster(t)}
		store, s := &fakeCache{}, &sources{}
		scheme := runtime.NewScheme()
		if err := routev1.Install(scheme); err != nil {
			t.Fatal(err)
		}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds, Cache: store, Scheme: scheme})
		c := newController(t)
		defer start(t, c)()
		w.Watch(t.Context(), c, Route, s.build) // before Start
		run(t, w)
		s.want(t, 0, 0)
		for round := range 3 {
			env.come(Route)
			s.want(t, 1, round+1)
			store.take()
			env.goAway(Route)
			s.want(t, 0, round+1)
			if got, want := store.take(), []string{"metadata Route", "unstructured Route", "typed "}; !slices.Equal(got, want) {
				t.Errorf("removed informers %q, want %q", got, want)
			}
		}
	})
}

func TestWatchOfServedKindAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := comeAndGo{newDiscovery(), newCluster(t)}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		env.come(HTTPRoute)
		s := &sources{}
		ctx, cancel := context.WithCancel(t.Context())
		c := newController(t)
		defer start(t, c)()
		w.Watch(ctx, c, HTTPRoute, s.build)
		s.want(t, 1, 1)

		// A watch whose context ended is not restarted.
		cancel()
		s.want(t, 0, 1)
		env.goAway(HTTPRoute)
		env.come(HTTPRoute)
		s.want(t, 0, 1)
	})
}

func TestWatchBeforeTheControllerStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := comeAndGo{newDiscovery(), newCluster(t)}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		s, c := &sources{}, newController(t)
		w.Watch(t.Context(), c, HTTPRoute, s.build)
		env.come(HTTPRoute)
		env.goAway(HTTPRoute)
		env.come(HTTPRoute)
		s.want(t, 0, 0)
		defer start(t, c)()
		s.want(t, 1, 1) // only the watch of the last appearance
	})
}

// stuck is a controller that holds its lock while its caches sync.
type stuck struct{ release chan struct{} }

func (s stuck) Watch(source.Source) error {
	<-s.release
	return errors.New("too late")
}

func TestWatchNeverBlocksTheNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, heard, said := comeAndGo{newDiscovery(), newCluster(t)}, &changes{}, &logs{}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds, Log: said.logger()})
		w.Subscribe(t.Context(), heard.add)
		c := stuck{make(chan struct{})}
		w.Watch(t.Context(), c, HTTPRoute, (&sources{}).build)
		run(t, w)
		env.come(HTTPRoute)
		env.goAway(HTTPRoute)
		if heard.len() != 2 {
			t.Errorf("%d changes came through, want 2", heard.len())
		}
		close(c.release)
		synctest.Wait()
		if said.with("too late") != 1 {
			t.Error("the failed watch was not reported")
		}
	})
}

func TestWatchReportsSourcesThatDoNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, said := comeAndGo{newDiscovery(), newCluster(t)}, &logs{}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds, Log: said.logger(),
			Cache: &fakeCache{err: errors.New("no such informer")}, Scheme: runtime.NewScheme()})
		c := newController(t)
		defer start(t, c)()
		w.Watch(t.Context(), c, HTTPRoute, (&sources{err: errors.New("no handler")}).build)
		run(t, w)
		env.come(HTTPRoute)
		if said.with("no handler") != 1 || said.with("no such informer") == 0 {
			t.Errorf("said %q", said.lines)
		}
	})
}

// syncingCache returns informers that never sync, like those of a removed kind.
type syncingCache struct {
	cache.Cache
	mu    sync.Mutex
	asked []client.Object
}

func (c *syncingCache) GetInformer(ctx context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.mu.Lock()
	c.asked = append(c.asked, obj)
	c.mu.Unlock()
	toolscache.WaitForCacheSync(ctx.Done(), func() bool { return false })
	return nil, ctx.Err()
}

func (c *syncingCache) RemoveInformer(context.Context, client.Object) error { return nil }

// A kind that vanishes while its informer syncs leaves nothing behind; the bubble fails on goroutines that hang.
func TestWatchMetadataOfAVanishingKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := comeAndGo{newDiscovery(), newCluster(t)}
		store := &syncingCache{}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds, Cache: store, Scheme: runtime.NewScheme()})
		c := newController(t)
		defer start(t, c)()
		w.WatchMetadata(t.Context(), c, HTTPRoute, &handler.EnqueueRequestForObject{})
		run(t, w)
		env.come(HTTPRoute)
		env.goAway(HTTPRoute)
		pass(time.Minute)
		if len(store.asked) != 1 {
			t.Fatalf("%d informers were asked for, want 1", len(store.asked))
		}
		meta, ok := store.asked[0].(*metav1.PartialObjectMetadata)
		if !ok || meta.GroupVersionKind() != HTTPRoute {
			t.Errorf("asked for %T %s", store.asked[0], store.asked[0].GetObjectKind().GroupVersionKind())
		}
	})
}
