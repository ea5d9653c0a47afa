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

// lateInformer has not synced; reading from its cache would block.
type lateInformer struct{ cache.Informer }

func (lateInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return notYet{}, nil
}

type notYet struct {
	toolscache.ResourceEventHandlerRegistration
}

func (notYet) HasSynced() bool { return false }

type lateCache struct {
	fakeCache
	t       *testing.T
	started int
}

func (c *lateCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	c.started++
	return lateInformer{}, nil
}

func (c *lateCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.t.Error("the cache was read before it had synced")
	return nil
}

// [D14] A kind whose watch does not sync is read from the API server, after a short wait that blocks no worker.
func TestKindsThatCannotBeWatchedBlockNoWorker(t *testing.T) {
	w := newFixture(t, wrapper([]string{mapTemplate}))
	late := &lateCache{fakeCache: fakeCache{WithWatch: w.server, fixture: w}, t: t}
	w.kinds.cache = late
	look := func() (observedObject, error) {
		return w.kinds.get(t.Context(), mapKind, types.NamespacedName{Namespace: "team", Name: "x"})
	}
	var wait *reconciler.Wait
	if _, err := look(); !errors.As(err, &wait) || wait.Retry != syncPollInterval {
		t.Fatalf("at first: %v", err)
	}
	w.clock.Step(syncTimeout)
	if s, err := look(); err != nil || !s.live || s.object != nil {
		t.Errorf("the kind counts as unreadable before the timeout: %+v %v", s, err)
	}
	if s, err := look(); err != nil || !s.unwatched || late.started != 1 {
		t.Errorf("still: %+v %v, started %d", s, err, late.started)
	}
}

// An unreadable component counts as existing, since the status contains its creation.
func TestUnreadableComponentsCountAsExisting(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must("Running")
	w.hidden["a"] = true
	w.clock.Step(creationLag)
	w.before = func(request string) error {
		if request[:3] == "get" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		}
		return nil
	}
	w.must("Running")
}
