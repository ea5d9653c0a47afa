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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// ErrAPIRemoved ends the manager when an API goes that a running component requires: informers and controllers of it cannot be taken out
// of a manager. The program should end without an error and be started again, which builds the other components only.
var ErrAPIRemoved = errors.New("an API that it requires is gone")

// retryMin and retryMax bound the pauses after a component could not be set up.
const retryMin, retryMax = time.Second, 30 * time.Second

// supervisor sets up the controllers of one component when the kinds that it requires are served. It runs on the leader only, so
// that a replica that does not lead continues serving webhooks when a required kind goes.
type supervisor struct {
	component Component
	mgr       *observed
	caps      Capabilities
	log       logr.Logger
	indexed   map[string]bool
}

func newSupervisor(c Component, mgr *observed, caps Capabilities) *supervisor {
	return &supervisor{component: c, mgr: mgr, caps: caps, log: mgr.GetLogger().WithValues("component", c.Name), indexed: map[string]bool{}}
}

// follow returns channels that are closed when the required kinds are served, and when one of them goes after that, even for a moment.
func (s *supervisor) follow(ctx context.Context) (served, gone <-chan struct{}) {
	came, went := make(chan struct{}), make(chan struct{})
	begin, end := sync.OnceFunc(func() { close(came) }), sync.OnceFunc(func() { close(went) })
	began := false
	s.caps.Follow(ctx, func(set capability.Set) {
		if set.HasAll(s.component.Requires...) {
			began = true
			begin()
		} else if began {
			end()
		}
	})
	return came, went
}

// Start implements manager.Runnable. A component that cannot be set up is tried again, since that is no reason to stop the others.
// It returns an error only for an API that is gone.
func (s *supervisor) Start(ctx context.Context) error {
	served, gone := s.follow(ctx)
	select {
	case <-served:
	case <-ctx.Done():
		return nil
	}
	retry := wait.Backoff{Duration: retryMin, Factor: 2, Cap: retryMax, Steps: math.MaxInt}
	for {
		err := s.run(ctx, gone)
		if err == nil || errors.Is(err, ErrAPIRemoved) {
			return err
		}
		pause := retry.Step()
		failures.WithLabelValues(s.component.Name).Inc()
		s.log.Error(err, "The component failed and will be started again", "after", pause)
		select {
		case <-time.After(pause):
		case <-gone: // an informer that the attempt gave an index went with the kind
			return s.end()
		case <-ctx.Done():
			return nil
		}
	}
}

// run sets the component up and returns when a required kind goes or ctx ends.
func (s *supervisor) run(ctx context.Context, gone <-chan struct{}) error {
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
	s.mgr.running(true)
	select {
	case <-gone:
		return s.end()
	case <-ctx.Done():
		return nil
	}
}

func (s *supervisor) end() error {
	return fmt.Errorf("component %s, which needs %s: %w", s.component.Name, capability.NewSet(s.component.Requires...), ErrAPIRemoved)
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
