package component

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// ray returns a component that requires two kinds and adds the given runnables.
func ray(runnables ...manager.Runnable) Component {
	c := Component{Name: "ray"}
	c.Requires = append(c.Requires, capability.RayCluster, capability.Route)
	c.Controllers = func(_ context.Context, mgr ctrl.Manager) error {
		for _, r := range runnables {
			if err := mgr.Add(r); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// testManager is a manager with components and capabilities.
type testManager struct {
	*fakeManager
	caps *fakeCapabilities
}

func newTestManager(t *testing.T, components ...Component) *testManager {
	t.Helper()
	h := &testManager{newManager(t), &fakeCapabilities{}}
	if err := Setup(h, h.caps, components, enableAll); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testManager) serve()      { h.caps.set(capability.RayCluster, capability.Route) }
func (h *testManager) removeKind() { h.caps.set(capability.Route) }

func (h *testManager) logCount(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, line := range h.messages {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestStartsWhenKindsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		h := newTestManager(t, ray(w))
		close(h.elected)
		defer h.start()()
		w.expectRuns(t, 0, 0)
		if h.logCount("Waiting for the APIs") != 1 {
			t.Error("want one log entry about the missing APIs")
		}
		h.caps.set(capability.RayCluster) // one of two required kinds
		w.expectRuns(t, 0, 0)
		h.serve()
		w.expectRuns(t, 1, 1)
		h.caps.set(capability.RayCluster, capability.Route, capability.HTTPRoute) // not required
		w.expectRuns(t, 1, 1)
		if err := h.stopError(); err != nil {
			t.Error(err)
		}
	})
}

// Even a short absence stops the manager, because controllers and informers of the kind cannot be removed from it.
func TestRemovedKindStopsManager(t *testing.T) {
	for name, restored := range map[string]bool{"permanently": false, "temporarily": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				h := newTestManager(t, ray(w))
				close(h.elected)
				defer h.start()()
				h.serve()
				w.expectRuns(t, 1, 1)
				h.removeKind()
				if restored {
					h.serve()
				}
				if err := h.stopError(); !errors.Is(err, ErrAPIRemoved) || !strings.Contains(err.Error(), "component ray, which needs RayCluster") {
					t.Errorf("the manager stopped with %v, want ErrAPIRemoved of component ray", err)
				}
				w.expectRuns(t, 0, 1)
			})
		})
	}
}

func TestStartsImmediatelyWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		caps := &fakeCapabilities{}
		caps.set(capability.RayCluster, capability.Route)
		mgr := newManager(t)
		close(mgr.elected)
		if err := Setup(mgr, caps, []Component{ray(w)}, enableAll); err != nil {
			t.Fatal(err)
		}
		w.expectRuns(t, 0, 0) // not before the manager starts
		defer mgr.start()()
		w.expectRuns(t, 1, 1)
	})
}

// A standby replica neither starts the component nor stops when the kind is removed.
func TestStandbyReplicaDoesNotStartComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, everywhere := &worker{}, &standby{}
		h := newTestManager(t, ray(leader, everywhere))
		defer h.start()()
		h.serve()
		h.removeKind() // before the election
		everywhere.expectRuns(t, 0, 0)
		h.serve()
		close(h.elected)
		leader.expectRuns(t, 1, 1)
		everywhere.expectRuns(t, 1, 1)
		if err := h.stopError(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailingSetupIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		var attempts atomic.Int32
		c := ray(w)
		add := c.Controllers
		c.Controllers = func(ctx context.Context, mgr ctrl.Manager) error {
			if err := add(ctx, mgr); err != nil {
				return err
			}
			if attempts.Add(1) < 8 {
				return errors.New("no matches for kind")
			}
			return nil
		}
		h := newTestManager(t, c)
		close(h.elected)
		defer h.start()()
		h.serve()
		advance(time.Minute) // 1, 2, 4, 8, 16, 30, ... seconds
		if n := attempts.Load(); n != 6 {
			t.Errorf("got %d attempts in a minute, want 6", n)
		}
		w.expectRuns(t, 0, 0) // no runnable of a failed attempt
		advance(time.Minute)
		w.expectRuns(t, 1, 1)
		if h.logCount("no matches for kind") != 7 {
			t.Errorf("got log %q, want the error of each failed attempt", h.messages)
		}
	})
}

// A required kind that is removed after a failed attempt stops the manager too, because informers of the attempt cannot be removed from it.
func TestRemovedKindAfterFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ray()
		c.Controllers = func(context.Context, ctrl.Manager) error { return errors.New("no") }
		h := newTestManager(t, c)
		close(h.elected)
		defer h.start()()
		h.serve()
		advance(minBackoff / 2)
		h.removeKind()
		if err := h.stopError(); !errors.Is(err, ErrAPIRemoved) {
			t.Errorf("the manager stopped with %v, want ErrAPIRemoved", err)
		}
	})
}

// The context of Controllers ends with a failed attempt and with the manager.
func TestContextOfControllersIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		c := ray()
		c.Controllers = func(ctx context.Context, _ ctrl.Manager) error {
			contexts = append(contexts, ctx)
			if len(contexts) == 1 {
				return errors.New("not yet")
			}
			return nil
		}
		h := newTestManager(t, c)
		close(h.elected)
		stop := h.start()
		h.serve()
		advance(2 * minBackoff)
		if len(contexts) != 2 || contexts[0].Err() == nil || contexts[1].Err() != nil {
			t.Fatalf("got %d attempts, want 2, with only the context of the first canceled", len(contexts))
		}
		stop()
		if contexts[1].Err() == nil {
			t.Error("the context of the component was not canceled with the manager")
		}
	})
}
