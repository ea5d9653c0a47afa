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

// house is a manager with components and capabilities.
type house struct {
	*fakeManager
	caps *fakeCapabilities
}

func newHouse(t *testing.T, components ...Component) *house {
	t.Helper()
	h := &house{newManager(t), &fakeCapabilities{}}
	if err := Setup(h, h.caps, components, all); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) serve()    { h.caps.set(capability.RayCluster, capability.Route) }
func (h *house) withdraw() { h.caps.set(capability.Route) }

func (h *house) logCount(text string) int {
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
		h := newHouse(t, ray(w))
		close(h.elected)
		defer h.start()()
		w.want(t, 0, 0)
		if h.logCount("Waiting for the APIs") != 1 {
			t.Error("want one log entry about the missing APIs")
		}
		h.caps.set(capability.RayCluster) // one of two
		w.want(t, 0, 0)
		h.serve()
		w.want(t, 1, 1)
		h.caps.set(capability.RayCluster, capability.Route, capability.HTTPRoute) // not required
		w.want(t, 1, 1)
		if err := h.end(); err != nil {
			t.Error(err)
		}
	})
}

// Even a short absence stops the manager, because the informers of the kind were removed.
func TestRemovedKindStopsManager(t *testing.T) {
	for name, back := range map[string]bool{"for good": false, "for a moment": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				h := newHouse(t, ray(w))
				close(h.elected)
				defer h.start()()
				h.serve()
				w.want(t, 1, 1)
				h.withdraw()
				if back {
					h.serve() // before any component reads it
				}
				if err := h.end(); !errors.Is(err, ErrAPIRemoved) || !strings.Contains(err.Error(), "component ray, which needs RayCluster") {
					t.Errorf("ended with %v", err)
				}
				w.want(t, 0, 1)
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
		if err := Setup(mgr, caps, []Component{ray(w)}, all); err != nil {
			t.Fatal(err)
		}
		w.want(t, 0, 0) // not before the manager starts
		defer mgr.start()()
		w.want(t, 1, 1)
	})
}

// A standby replica neither starts the component nor stops when the kind is removed.
func TestStandbyReplicaDoesNotStartComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, everywhere := &worker{}, &standby{}
		h := newHouse(t, ray(leader, everywhere))
		defer h.start()()
		h.serve()
		h.withdraw() // before the election
		everywhere.want(t, 0, 0)
		h.serve()
		close(h.elected)
		leader.want(t, 1, 1)
		everywhere.want(t, 1, 1)
		if err := h.end(); err != nil {
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
		h := newHouse(t, c)
		close(h.elected)
		defer h.start()()
		h.serve()
		pass(time.Minute) // 1, 2, 4, 8, 16, 30, ... seconds
		if n := attempts.Load(); n != 6 {
			t.Errorf("%d attempts in a minute, want 6", n)
		}
		w.want(t, 0, 0) // all or nothing
		pass(time.Minute)
		w.want(t, 1, 1)
		if h.logCount("no matches for kind") != 7 {
			t.Errorf("said %q", h.messages)
		}
	})
}

// The informers of a failed attempt are lost when a required kind is removed.
func TestRemovedKindAfterFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ray()
		c.Controllers = func(context.Context, ctrl.Manager) error { return errors.New("no") }
		h := newHouse(t, c)
		close(h.elected)
		defer h.start()()
		h.serve()
		pass(minBackoff / 2)
		h.withdraw()
		if err := h.end(); !errors.Is(err, ErrAPIRemoved) {
			t.Errorf("ended with %v", err)
		}
	})
}

// The context of Controllers ends with a failed attempt and with the manager.
func TestContextOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		c := ray()
		c.Controllers = func(ctx context.Context, _ ctrl.Manager) error {
			contexts = append(contexts, ctx)
			if len(contexts) == 1 {
				return errors.New("not this time")
			}
			return nil
		}
		h := newHouse(t, c)
		close(h.elected)
		stop := h.start()
		h.serve()
		pass(2 * minBackoff)
		if len(contexts) != 2 || contexts[0].Err() == nil || contexts[1].Err() != nil {
			t.Fatalf("%d attempts; the context of the first has to be over, that of the second not", len(contexts))
		}
		stop()
		if contexts[1].Err() == nil {
			t.Error("the context of the component was not canceled with the manager")
		}
	})
}
