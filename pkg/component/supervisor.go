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
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// ErrAPIRemoved is returned by the manager when a kind that a component requires is removed after its setup began: informers and
// controllers cannot be removed from a manager. The program should start again without the component.
var ErrAPIRemoved = errors.New("an API that it requires was removed")

const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// supervisor adds the controllers of one component when the required kinds are served. It runs on the leader only, so that other replicas
// continue to serve webhooks when a required kind is removed.
type supervisor struct {
	Component
	mgr  *instrumentedManager
	caps CapabilitySource
	log  logr.Logger
}

// Start implements manager.Runnable. Errors of the component are retried, because the other components must continue. Only ErrAPIRemoved is
// returned.
func (s *supervisor) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	wasServed := false
	s.caps.OnChange(ctx, func(set capability.Set) {
		switch served := set.HasAll(s.Requires...); {
		case served && !wasServed:
			wasServed = true
			running.Go(func() { s.runControllers(ctx) })
		case !served && wasServed:
			cancel(fmt.Errorf("component %s, which needs %s: %w", s.Name, capability.NewSet(s.Requires...), ErrAPIRemoved))
		}
	})
	<-ctx.Done()
	if err := context.Cause(ctx); errors.Is(err, ErrAPIRemoved) {
		return err
	}
	return nil
}

// runControllers adds the controllers, with retries, and returns when ctx ends.
func (s *supervisor) runControllers(ctx context.Context) {
	backoff := wait.Backoff{Duration: minBackoff, Factor: 2, Cap: maxBackoff, Steps: math.MaxInt}
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { // ends with ctx
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the subscriptions of a failed attempt
		if err := s.addControllers(ctx); err != nil {
			failuresCounter.WithLabelValues(s.Name).Inc()
			s.log.Error(err, "The component failed; restarting it")
			return false, nil
		}
		<-ctx.Done()
		return true, nil
	})
}

// addControllers adds all controllers to the manager or, if their setup fails, none.
func (s *supervisor) addControllers(ctx context.Context) error {
	buffered := &bufferedManager{Manager: s.mgr}
	if err := s.Controllers(ctx, buffered); err != nil {
		return fmt.Errorf("setting up controllers: %w", err)
	}
	s.log.Info("The APIs that the component requires are served, starting it")
	for _, r := range buffered.runnables {
		if err := s.mgr.Add(r); err != nil {
			return fmt.Errorf("adding to the manager: %w", err)
		}
	}
	s.mgr.setReady(controllers, true)
	return nil
}

// bufferedManager is the manager for one attempt to set up a component. Its runnables are added after the attempt succeeded. Informers of
// the manager's cache remain after a failed attempt and reject a second index of the same name, so components index only their own caches.
type bufferedManager struct {
	ctrl.Manager
	runnables []manager.Runnable
}

// Add implements manager.Manager. It must not be called after the attempt.
func (m *bufferedManager) Add(r manager.Runnable) error {
	m.runnables = append(m.runnables, r)
	return nil
}
