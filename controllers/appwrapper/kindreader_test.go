package appwrapper

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// unsyncedInformer has not synced: a read from its cache would block.
type unsyncedInformer struct{ cache.Informer }

func (unsyncedInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return unsyncedRegistration{}, nil
}

type unsyncedRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (unsyncedRegistration) HasSynced() bool { return false }

type unsyncedCache struct {
	fakeCache
	t       *testing.T
	started int
}

func (c *unsyncedCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	c.started++
	return unsyncedInformer{}, nil
}

func (c *unsyncedCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.t.Error("the cache was read before it had synced")
	return nil
}

// [D14] A kind whose watch does not sync is read from the API server, after a short wait that blocks no worker.
func TestKindsThatCannotBeWatchedBlockNoWorker(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{configMapJSON}))
	unsynced := &unsyncedCache{fakeCache: fakeCache{WithWatch: f.server, fixture: f}, t: t}
	f.kinds.cache = unsynced
	getConfigMap := func() (observedObject, error) {
		return f.kinds.get(t.Context(), configMapKind, types.NamespacedName{Namespace: "team", Name: "x"})
	}
	var wait *reconciler.Wait
	if _, err := getConfigMap(); !errors.As(err, &wait) || wait.Retry != syncPollInterval {
		t.Fatalf("before syncTimeout: got error %v, want a wait of %s", err, syncPollInterval)
	}
	f.clock.Step(syncTimeout)
	if observed, err := getConfigMap(); err != nil || !observed.live || observed.object != nil {
		t.Errorf("after syncTimeout: got %+v, error %v, want a live read without an object", observed, err)
	}
	if observed, err := getConfigMap(); err != nil || !observed.unwatched || unsynced.started != 1 {
		t.Errorf("second read: got %+v, error %v after %d started watches, want unwatched after one started watch", observed, err, unsynced.started)
	}
}

// While the first list of a kind is pending, a deletion requeues after syncPollInterval and does not write the status.
func TestDeletionWaitsForFirstListWithoutReport(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{jobJSON("j", 1)}))
	f.reconcileToPhase("Running")
	f.restart()
	f.kinds.cache = &unsyncedCache{fakeCache: fakeCache{WithWatch: f.server, fixture: f}, t: t}
	if err := f.server.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}
	writes := len(f.writes)
	if result, err := f.reconcileOnce(); err != nil || result.RequeueAfter != syncPollInterval || len(f.writes) != writes {
		t.Errorf("got result %+v, error %v, writes %q, want a wait of %s without writes", result, err, f.writes[writes:], syncPollInterval)
	}
}

// An unreadable component counts as existing, because the status records its creation.
func TestUnreadableComponentsCountAsExisting(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase("Running")
	f.uncached["a"] = true
	f.clock.Step(creationLag)
	f.beforeRequest = func(request string) error {
		if request[:3] == "get" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		}
		return nil
	}
	f.reconcileToPhase("Running")
}
