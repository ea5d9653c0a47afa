package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// retryMin and retryMax bound the pauses after a component failed to start or to run.
const retryMin, retryMax = time.Second, 30 * time.Second

// supervisor runs the controllers of one component while the kinds that it requires are served. It is a Runnable on
// every replica; the controllers inside wait for the election one by one.
type supervisor struct {
	component Component
	mgr       ctrl.Manager
	clock     clock.Clock
	log       logr.Logger
	indexes   *indexes

	mu      sync.Mutex
	served  bool
	losses  int           // how often the required kinds went, so that a short absence is not overlooked
	changed chan struct{} // closed at the next change
}

func newSupervisor(c Component, mgr ctrl.Manager, clk clock.Clock) *supervisor {
	return &supervisor{
		component: c,
		mgr:       mgr,
		clock:     clk,
		log:       mgr.GetLogger().WithValues("component", c.Name),
		indexes:   newIndexes(),
		changed:   make(chan struct{}),
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *supervisor) NeedLeaderElection() bool { return false }

// observe takes in a new set of capabilities. It never blocks.
func (s *supervisor) observe(set capability.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	served := set.HasAll(s.component.Requires...)
	if served == s.served {
		return
	}
	if !served {
		s.losses++
	}
	s.served = served
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *supervisor) satisfied() bool {
	served, _, _ := s.state()
	return served
}

// state returns whether the component may run, the number of losses so far, and a channel for the next change.
func (s *supervisor) state() (served bool, losses int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, s.losses, s.changed
}

// Start implements manager.Runnable. It ends with ctx only, and never with an error: one component that cannot run is
// no reason to stop the others.
func (s *supervisor) Start(ctx context.Context) error {
	failed := 0
	for ctx.Err() == nil {
		served, losses, changed := s.state()
		if !served {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		began := s.clock.Now()
		err := s.run(ctx, losses)
		if err == nil || ctx.Err() != nil {
			failed = 0
			continue
		}
		if s.clock.Since(began) > retryMax {
			failed = 0 // it ran well for a while
		}
		failed++
		pause := backoff(failed)
		failures.WithLabelValues(s.component.Name).Inc()
		s.log.Error(err, "The component failed and will be started again", "after", pause)
		s.pause(ctx, pause)
	}
	return nil
}

// run builds the controllers and runs them until the required kinds go, one of them fails, or ctx ends.
func (s *supervisor) run(ctx context.Context, losses int) error {
	ctx, cancel := context.WithCancel(ctx)
	g := &group{ctx: ctx, elected: s.mgr.Elected(), failed: make(chan error, 1)}
	h := &handlers{}
	defer s.rested() // when nothing runs any more that could write them again
	defer s.dropInformers(s.mgr)
	defer h.remove(s.log)
	defer g.wait()
	defer cancel()
	if err := s.component.Controllers(ctx, &managerOf{Manager: s.mgr, group: g, indexes: s.indexes, handlers: h}); err != nil {
		return fmt.Errorf("setting up controllers: %w", err)
	}
	s.log.Info("The APIs that the component requires are served, starting it")
	g.start()
	observeRunning(s.component.Name, true)
	for {
		_, now, changed := s.state()
		if now != losses {
			s.log.Info("An API that the component requires is gone, the component rests")
			return nil
		}
		select {
		case <-changed:
		case err := <-g.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// rested takes what the component has shown out of the metrics: nobody keeps it right any more.
func (s *supervisor) rested() {
	observeRunning(s.component.Name, false)
	reconciler.ForgetConditions(s.component.Name)
}

func (s *supervisor) pause(ctx context.Context, d time.Duration) {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

func backoff(failures int) time.Duration {
	d := retryMin
	for range failures - 1 {
		if d *= 2; d >= retryMax {
			return retryMax
		}
	}
	return d
}

// group runs what one run of a component added. What is added before start waits for it, so that a component is
// started as a whole or not at all.
type group struct {
	ctx     context.Context
	elected <-chan struct{}
	failed  chan error // the first failure

	mu      sync.Mutex
	started bool
	closed  bool
	staged  []manager.Runnable
	running sync.WaitGroup
}

var errStopped = errors.New("the component is being stopped")

// add takes a runnable in, or starts it when the group runs already.
func (g *group) add(r manager.Runnable) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed || g.ctx.Err() != nil:
		return errStopped
	case g.started:
		g.launch(r)
	default:
		g.staged = append(g.staged, r)
	}
	return nil
}

func (g *group) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started = true
	for _, r := range g.staged {
		g.launch(r)
	}
	g.staged = nil
}

func (g *group) launch(r manager.Runnable) {
	g.running.Go(func() {
		if needsElection(r) {
			select {
			case <-g.elected:
			case <-g.ctx.Done():
				return
			}
		}
		if err := r.Start(g.ctx); err != nil && g.ctx.Err() == nil {
			select {
			case g.failed <- err:
			default: // the group ends already
			}
		}
	})
}

// wait refuses what is still to come and returns when everything has ended; the context must have been cancelled.
func (g *group) wait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// needsElection follows the manager: what does not say otherwise runs on the leader only.
func needsElection(r manager.Runnable) bool {
	le, ok := r.(manager.LeaderElectionRunnable)
	return !ok || le.NeedLeaderElection()
}
