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

// ErrAPIRemoved is returned by the manager when a kind that a running component requires is removed: informers and controllers cannot be
// removed from a manager. The process should exit successfully and restart without the component.
var ErrAPIRemoved = errors.New("an API that it requires was removed")

const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// supervisor adds the controllers of one component when the required kinds are served. It runs on the leader only, so that other replicas
// continue to serve webhooks when a required kind is removed.
type supervisor struct {
	component Component
	mgr       *instrumentedManager
	caps      CapabilitySource
	log       logr.Logger
	indexed   map[string]bool
}

func newSupervisor(c Component, mgr *instrumentedManager, caps CapabilitySource) *supervisor {
	return &supervisor{component: c, mgr: mgr, caps: caps, log: mgr.GetLogger().WithValues("component", c.Name), indexed: map[string]bool{}}
}

// watchRequired returns channels that are closed when all required kinds are served, and when one of them is removed later.
func (s *supervisor) watchRequired(ctx context.Context) (served, removed <-chan struct{}) {
	servedCh, removedCh := make(chan struct{}), make(chan struct{})
	closeServed, closeRemoved := sync.OnceFunc(func() { close(servedCh) }), sync.OnceFunc(func() { close(removedCh) })
	wasServed := false
	s.caps.OnChange(ctx, func(set capability.Set) {
		if set.HasAll(s.component.Requires...) {
			wasServed = true
			closeServed()
		} else if wasServed {
			closeRemoved()
		}
	})
	return servedCh, removedCh
}

// Start implements manager.Runnable. Errors of the component are retried, because the other components must continue. Only ErrAPIRemoved is
// returned.
func (s *supervisor) Start(ctx context.Context) error {
	served, removed := s.watchRequired(ctx)
	select {
	case <-served:
	case <-ctx.Done():
		return nil
	}
	backoff := wait.Backoff{Duration: minBackoff, Factor: 2, Cap: maxBackoff, Steps: math.MaxInt}
	for {
		err := s.runControllers(ctx, removed)
		if err == nil || errors.Is(err, ErrAPIRemoved) {
			return err
		}
		pause := backoff.Step()
		failuresCounter.WithLabelValues(s.component.Name).Inc()
		s.log.Error(err, "The component failed; restarting it", "after", pause)
		select {
		case <-time.After(pause):
		case <-removed: // informers that the failed attempt indexed cannot be used again
			return s.apiRemovedError()
		case <-ctx.Done():
			return nil
		}
	}
}

// runControllers adds the controllers, and returns when a required kind is removed or ctx ends.
func (s *supervisor) runControllers(ctx context.Context, removed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the subscriptions of a failed attempt
	buffered := &bufferedManager{Manager: s.mgr, indexed: s.indexed}
	if err := s.component.Controllers(ctx, buffered); err != nil {
		return fmt.Errorf("setting up controllers: %w", err)
	}
	s.log.Info("The APIs that the component requires are served, starting it")
	if err := buffered.flush(); err != nil {
		return err
	}
	s.mgr.setControllersAdded(true)
	select {
	case <-removed:
		return s.apiRemovedError()
	case <-ctx.Done():
		return nil
	}
}

func (s *supervisor) apiRemovedError() error {
	return fmt.Errorf("component %s, which needs %s: %w", s.component.Name, capability.NewSet(s.component.Requires...), ErrAPIRemoved)
}

// bufferedManager is the manager for one attempt to set up a component. It adds runnables only after the attempt succeeded, and allows later
// attempts to reuse controller names and indexes.
type bufferedManager struct {
	ctrl.Manager
	indexed map[string]bool

	mu        sync.Mutex
	flushed   bool
	runnables []manager.Runnable
}

// Add implements manager.Manager.
func (s *bufferedManager) Add(r manager.Runnable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flushed {
		return s.Manager.Add(r)
	}
	s.runnables = append(s.runnables, r)
	return nil
}

func (s *bufferedManager) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushed = true
	for _, r := range s.runnables {
		if err := s.Manager.Add(r); err != nil {
			return fmt.Errorf("adding to the manager: %w", err)
		}
	}
	return nil
}

// GetControllerOptions implements manager.Manager. It allows an attempt to reuse controller names.
func (s *bufferedManager) GetControllerOptions() config.Controller {
	options := s.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	return options
}

// GetFieldIndexer implements cluster.Cluster.
func (s *bufferedManager) GetFieldIndexer() client.FieldIndexer { return s }

// IndexField implements client.FieldIndexer. Informers remain after a failed attempt and reject a second index of the same name.
func (s *bufferedManager) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	key := fmt.Sprintf("%T %s %s", obj, obj.GetObjectKind().GroupVersionKind(), field)
	if s.indexed[key] {
		return nil
	}
	err := s.Manager.GetFieldIndexer().IndexField(ctx, obj, field, extract)
	s.indexed[key] = err == nil
	return err
}
