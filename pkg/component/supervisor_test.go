package component

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// ray is a component that requires two kinds and runs the given runnables.
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

// house is a manager with components and capabilities at rest.
type house struct {
	*fakeManager
	caps *fakeCapabilities
}

func newHouse(t *testing.T, components ...Component) *house {
	t.Helper()
	h := &house{newManager(t), &fakeCapabilities{}}
	if err := Setup(t.Context(), h, h.caps, components, all); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) serve()    { h.caps.set(capability.RayCluster, capability.Route) }
func (h *house) withdraw() { h.caps.set(capability.Route) }

func (h *house) heard(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, line := range h.said {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestStartsLateRestsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{slow: time.Minute}
		h := newHouse(t, ray(w))
		close(h.elected)
		defer h.start()()
		w.want(t, 0, 0)
		if h.heard("Waiting for the APIs") != 1 {
			t.Error("nothing was said about what is missing")
		}
		h.caps.set(capability.RayCluster) // one of two
		w.want(t, 0, 0)
		for round := range 3 {
			h.serve()
			w.want(t, 1, round+1)
			h.caps.set(capability.RayCluster, capability.Route, capability.HTTPRoute) // does not matter
			w.want(t, 1, round+1)
			h.withdraw()
			pass(time.Hour)
			w.want(t, 0, round+1)
		}
	})
}

func TestStartsAtOnceWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		caps := &fakeCapabilities{}
		caps.set(capability.RayCluster, capability.Route)
		mgr := newManager(t)
		close(mgr.elected)
		if err := Setup(t.Context(), mgr, caps, []Component{ray(w)}, all); err != nil {
			t.Fatal(err)
		}
		w.want(t, 0, 0) // not before the manager starts
		defer mgr.start()()
		w.want(t, 1, 1)
	})
}

// The informers of the first life are gone, so that even the shortest absence asks for a new start.
func TestShortAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{slow: time.Second}
		h := newHouse(t, ray(w))
		close(h.elected)
		defer h.start()()
		h.serve()
		w.want(t, 1, 1)
		h.withdraw()
		h.serve() // before anybody could look
		pass(2 * time.Second)
		w.want(t, 1, 2)
	})
}

func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, everywhere := &worker{}, &standby{}
		h := newHouse(t, ray(leader, everywhere))
		defer h.start()()
		h.serve()
		leader.want(t, 0, 0)
		everywhere.want(t, 1, 1)
		h.withdraw() // before the election
		everywhere.want(t, 0, 1)
		h.serve()
		close(h.elected)
		leader.want(t, 1, 1)
		everywhere.want(t, 1, 2)
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
		if h.heard("no matches for kind") != 7 {
			t.Errorf("said %q", h.said)
		}
	})
}

func TestFailingControllerRestartsTheComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &worker{fail: make(chan error)}, &worker{}
		h := newHouse(t, ray(bad, good))
		close(h.elected)
		defer h.start()()
		h.serve()
		good.want(t, 1, 1)
		bad.fail <- errors.New("timed out waiting for cache to be synced")
		bad.want(t, 0, 1)
		good.want(t, 0, 1)
		pass(retryMin)
		bad.want(t, 1, 2)
		good.want(t, 1, 2)
		if h.heard("timed out waiting for cache") != 1 {
			t.Errorf("said %q", h.said)
		}

		// After a good while the back-off begins anew.
		pass(time.Hour)
		bad.fail <- errors.New("again")
		pass(retryMin)
		bad.want(t, 1, 3)

		// One that ends well does not concern the others.
		bad.fail <- nil
		pass(time.Hour)
		good.want(t, 1, 3)
	})
}

func TestLossDuringBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{fail: make(chan error)}
		h := newHouse(t, ray(w))
		close(h.elected)
		defer h.start()()
		h.serve()
		synctest.Wait()
		w.fail <- errors.New("gone")
		h.withdraw()
		pass(time.Hour)
		w.want(t, 0, 1)
		h.serve()
		w.want(t, 1, 2)
	})
}

func TestAddingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &worker{}
		var seen ctrl.Manager
		c := ray()
		c.Controllers = func(_ context.Context, mgr ctrl.Manager) error { seen = mgr; return nil }
		h := newHouse(t, c)
		close(h.elected)
		defer h.start()()
		h.serve()
		synctest.Wait()
		if err := seen.Add(late); err != nil {
			t.Fatal(err)
		}
		late.want(t, 1, 1)
		h.withdraw()
		late.want(t, 0, 1)
		if err := seen.Add(late); !errors.Is(err, errStopped) {
			t.Errorf("error %v, want that the component is being stopped", err)
		}
	})
}

// The context that Controllers gets ends with the run, so that what hangs on it ends too.
func TestContextOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		c := ray()
		c.Controllers = func(ctx context.Context, _ ctrl.Manager) error {
			contexts = append(contexts, ctx)
			return nil
		}
		h := newHouse(t, c)
		stop := h.start()
		h.serve()
		synctest.Wait()
		h.withdraw()
		synctest.Wait()
		h.serve()
		synctest.Wait()
		if len(contexts) != 2 || contexts[0].Err() == nil || contexts[1].Err() != nil {
			t.Fatalf("%d runs; the context of the first has to be over, that of the second not", len(contexts))
		}
		stop()
		if contexts[1].Err() == nil {
			t.Error("the context outlives the manager")
		}
	})
}

func TestPausesComeFromTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := ray()
		c.Controllers = func(context.Context, ctrl.Manager) error { attempts++; return errors.New("no") }
		mgr, caps, clk := newManager(t), &fakeCapabilities{}, clocktesting.NewFakeClock(time.Unix(0, 0))
		if err := setup(t.Context(), mgr, caps, []Component{c}, all, clk); err != nil {
			t.Fatal(err)
		}
		defer mgr.start()()
		caps.set(capability.RayCluster, capability.Route)
		pass(time.Hour)
		if attempts != 1 {
			t.Fatalf("%d attempts before the clock moved", attempts)
		}
		clk.Step(retryMin)
		synctest.Wait()
		if attempts != 2 {
			t.Errorf("%d attempts", attempts)
		}
	})
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: retryMax, 1000: retryMax} {
		if got := backoff(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}
