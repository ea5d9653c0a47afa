package component

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// ErrGone ends the manager when an API goes that a running component requires: informers and controllers of it cannot be taken out
// of a manager. The program should end without an error and be started again, which builds the other components only.
var ErrGone = errors.New("an API that it requires is gone")

// retryMin and retryMax bound the pauses after a component could not be set up.
const retryMin, retryMax = time.Second, 30 * time.Second

// supervisor sets up the controllers of one component when the kinds that it requires are served. It runs on the leader only, so
// that a replica that does not lead continues serving webhooks when a required kind goes.
type supervisor struct {
	component Component
	mgr       ctrl.Manager
	clock     clock.Clock
	log       logr.Logger
	indexed   map[string]bool

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
		indexed:   map[string]bool{},
		changed:   make(chan struct{}),
	}
}

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

// state returns whether the component may run, the number of losses so far, and a channel for the next change.
func (s *supervisor) state() (served bool, losses int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, s.losses, s.changed
}

// await returns the number of losses when the condition holds; ok is false when ctx has ended before.
func (s *supervisor) await(ctx context.Context, holds func(served bool, losses int) bool) (losses int, ok bool) {
	for {
		served, losses, changed := s.state()
		if holds(served, losses) {
			return losses, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return losses, false
		}
	}
}

// Start implements manager.Runnable. A component that cannot be set up is tried again, since that is no reason to stop the others.
// It returns an error only for an API that is gone.
func (s *supervisor) Start(ctx context.Context) error {
	retry := wait.Backoff{Duration: retryMin, Factor: 2, Cap: retryMax, Steps: math.MaxInt}
	for attempt, began := 0, 0; ; attempt++ {
		losses, ok := s.await(ctx, func(served bool, _ int) bool { return served })
		if !ok {
			return nil
		}
		if attempt > 0 && losses != began {
			return s.gone() // an informer that the former attempt gave an index went with the kind
		}
		began = losses
		err := s.run(ctx, losses)
		if err == nil || errors.Is(err, ErrGone) {
			return err
		}
		pause := retry.Step()
		failures.WithLabelValues(s.component.Name).Inc()
		s.log.Error(err, "The component failed and will be started again", "after", pause)
		select {
		case <-s.clock.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// run sets the component up and returns when a required kind goes or ctx ends.
func (s *supervisor) run(ctx context.Context, losses int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what a failed attempt has subscribed to ends with it
	stage := &staged{Manager: s.mgr, indexed: s.indexed}
	if err := s.component.Controllers(ctx, stage); err != nil {
		return fmt.Errorf("setting up controllers: %w", err)
	}
	s.log.Info("The APIs that the component requires are served, starting it")
	if err := stage.launch(); err != nil {
		return err
	}
	observeRunning(s.component.Name, true)
	if _, gone := s.await(ctx, func(_ bool, now int) bool { return now != losses }); !gone {
		return nil
	}
	return s.gone()
}

func (s *supervisor) gone() error {
	return fmt.Errorf("component %s, which needs %s: %w", s.component.Name, capability.NewSet(s.component.Requires...), ErrGone)
}

// staged is the manager as one attempt to set up a component sees it: what it adds waits until the attempt has succeeded, and a
// later attempt may use the same names and indexes.
type staged struct {
	ctrl.Manager
	indexed map[string]bool

	mu        sync.Mutex
	launched  bool
	runnables []manager.Runnable
}

// Add implements manager.Manager.
func (s *staged) Add(r manager.Runnable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launched {
		return s.Manager.Add(r)
	}
	s.runnables = append(s.runnables, r)
	return nil
}

func (s *staged) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched = true
	for _, r := range s.runnables {
		if err := s.Manager.Add(r); err != nil {
			return fmt.Errorf("adding to the manager: %w", err)
		}
	}
	return nil
}

// GetControllerOptions allows a controller to have the name of one of an earlier attempt.
func (s *staged) GetControllerOptions() config.Controller {
	options := s.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	return options
}

// GetFieldIndexer implements cluster.Cluster.
func (s *staged) GetFieldIndexer() client.FieldIndexer { return s }

// IndexField implements client.FieldIndexer. Informers outlive an attempt and refuse to take an index twice.
func (s *staged) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	key := fmt.Sprintf("%T %s %s", obj, obj.GetObjectKind().GroupVersionKind(), field)
	if s.indexed[key] {
		return nil
	}
	err := s.Manager.GetFieldIndexer().IndexField(ctx, obj, field, extract)
	s.indexed[key] = err == nil
	return err
}
