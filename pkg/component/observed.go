package component

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// observed is the manager as every component sees it: its events have no credentials, and the caches that it waits for are known.
type observed struct {
	ctrl.Manager
	component string
}

// GetEventRecorder implements cluster.Cluster.
func (o *observed) GetEventRecorder(name string) recorder.EventRecorder {
	return redact.Recorder(o.Manager.GetEventRecorder(name))
}

// GetCache implements cluster.Cluster.
func (o *observed) GetCache() cache.Cache {
	return &awaited{Cache: o.Manager.GetCache(), component: o.component}
}

// awaited is a cache that reports which kinds a component waits for. Informers are returned when they have synced, so one that never
// is, for want of a right, shows as a component that does not run.
type awaited struct {
	cache.Cache
	component string
}

// GetInformer implements cache.Informers.
func (a *awaited) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind())
	progress.await(a.component, kind)
	i, err := a.Cache.GetInformer(ctx, obj, opts...)
	if err == nil {
		progress.synced(a.component, kind)
	}
	return i, err
}

// GetInformerForKind implements cache.Informers.
func (a *awaited) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	progress.await(a.component, kind.String())
	i, err := a.Cache.GetInformerForKind(ctx, kind, opts...)
	if err == nil {
		progress.synced(a.component, kind.String())
	}
	return i, err
}

// progress is behind the gauge of running components.
var progress = &componentStates{of: map[string]*state{}}

// state of a component: whether its controllers are set up, and the kinds whose caches they still wait for.
type state struct {
	setUp   bool
	waiting map[string]bool
}

type componentStates struct {
	mu sync.Mutex
	of map[string]*state
}

func (s *componentStates) change(component string, change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[component] == nil {
		s.of[component] = &state{waiting: map[string]bool{}}
	}
	now := s.of[component]
	change(now)
	waiting := slices.Contains(slices.Collect(maps.Values(now.waiting)), true)
	runningGauge.WithLabelValues(component).Set(number(now.setUp && !waiting))
}

func (s *componentStates) await(component, kind string) {
	s.change(component, func(c *state) {
		if _, known := c.waiting[kind]; !known {
			c.waiting[kind] = true
		}
	})
}

func (s *componentStates) synced(component, kind string) {
	s.change(component, func(c *state) { c.waiting[kind] = false })
}
