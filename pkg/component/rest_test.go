package component

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// tally is an informer that counts its handlers, and a cache of which every informer is that one.
type tally struct {
	cache.Cache
	cache.Informer
	handlers, dropped int
}

func (i *tally) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i, nil
}
func (i *tally) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	return i, nil
}
func (i *tally) RemoveInformer(context.Context, client.Object) error {
	i.dropped++
	return nil
}
func (i *tally) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers++
	return nil, nil
}
func (i *tally) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}
func (i *tally) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}
func (i *tally) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	i.handlers--
	return nil
}

// Whatever a component put on informers that outlive it goes when it rests, its reads fail, and an informer that one of
// them may have started for the API that is gone is stopped.
func TestLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer := &tally{}
		var reader client.Client
		c := ray()
		c.Controllers = func(ctx context.Context, mgr ctrl.Manager) error {
			reader = mgr.GetClient()
			byObject, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{})
			if err != nil {
				return err
			}
			byKind, err := mgr.GetCache().GetInformerForKind(ctx, capability.Route)
			if err != nil {
				return err
			}
			handler := toolscache.ResourceEventHandlerFuncs{}
			_, first := byObject.AddEventHandler(handler)
			_, second := byObject.AddEventHandlerWithResyncPeriod(handler, 0)
			_, third := byKind.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
			return errors.Join(first, second, third)
		}
		h := newHouse(t, c)
		h.cache, h.client = informer, fake.NewClientBuilder().Build()
		defer h.start()()
		for range 2 {
			h.serve()
			synctest.Wait()
			if err := reader.List(t.Context(), &corev1.SecretList{}); err != nil || informer.handlers != 3 {
				t.Errorf("running: %d handlers, error %v", informer.handlers, err)
			}
			before := informer.dropped
			h.withdraw()
			synctest.Wait()
			list := reader.List(t.Context(), &corev1.SecretList{})
			get := reader.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Secret{})
			if informer.handlers != 0 || !errors.Is(list, context.Canceled) || !errors.Is(get, context.Canceled) {
				t.Errorf("resting: %d handlers, errors %v and %v", informer.handlers, list, get)
			}
			if informer.dropped == before {
				t.Error("the informers of the required kinds were left alone")
			}
		}
	})
}

// However often a component is stopped and built anew, one run of it listens to what outlives it, and none that rests does; a run
// whose building fails leaves nobody either.
func TestNobodyListensForARunThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var settings follow.Listeners[string]
		runs, calls := 0, map[int]int{}
		c := ray()
		h := &house{newManager(t), &fakeCapabilities{}}
		c.Controllers = func(ctx context.Context, mgr ctrl.Manager) error {
			runs++
			run := runs
			h.caps.Subscribe(ctx, func(capability.Set) { calls[run]++ })
			if run%10 == 0 {
				return errors.New("not this time")
			}
			building, err := controller.NewTypedUnmanaged("heard", controller.TypedOptions[reconcile.Request]{
				SkipNameValidation: new(true), Logger: mgr.GetLogger(),
				Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }),
			})
			if err != nil {
				return err
			}
			to := &handler.EnqueueRequestForObject{}
			return errors.Join(building.Watch(settings.Changes(&corev1.Secret{}, to)), building.Watch(h.caps.Changes(&corev1.Secret{}, to)),
				mgr.Add(building))
		}
		if err := Setup(t.Context(), h, h.caps, []Component{c}, all); err != nil {
			t.Fatal(err)
		}
		close(h.elected)
		defer h.start()()
		supervisors := h.caps.Len()
		for range 100 {
			h.serve()
			pass(2 * time.Second) // and the second attempt of one that failed
			if settings.Len() != 1 || h.caps.Len() != supervisors+2 {
				t.Fatalf("run %d: %d and %d listen, want 1 and %d", runs, settings.Len(), h.caps.Len(), supervisors+2)
			}
			settings.Notify("changed")
			h.withdraw()
			pass(time.Second)
			if settings.Len() != 0 || h.caps.Len() != supervisors {
				t.Fatalf("resting after run %d: %d and %d listen, want 0 and %d", runs, settings.Len(), h.caps.Len(), supervisors)
			}
			h.caps.set(capability.Route, capability.HTTPRoute) // a change that only those hear who run
		}
		if runs < 110 {
			t.Errorf("%d runs, want a hundred and those that failed", runs)
		}
		for run, n := range calls {
			if n > 1 { // that which ends it is told while it still runs
				t.Errorf("run %d was called %d times", run, n)
			}
		}
	})
}
