package component

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// observed is the manager as a component sees it: its events have no credentials, and the caches that it waits for are known, which
// is behind the gauge of running components.
type observed struct {
	ctrl.Manager
	component string

	mu      sync.Mutex
	setUp   bool            // the controllers
	waiting map[string]bool // the kinds whose caches they have asked for: whether they still wait
}

// observe shows a component before anything of it runs. Parts of one component are observed as one.
func observe(mgr ctrl.Manager, component string, enabled bool) *observed {
	if whole, ok := mgr.(*observed); ok && whole.component == component {
		whole.running(false)
		return whole
	}
	o := &observed{Manager: mgr, component: component, waiting: map[string]bool{}}
	enabledGauge.WithLabelValues(component).Set(number(enabled))
	failures.WithLabelValues(component)
	o.running(false)
	return o
}

// running notes whether the controllers are set up.
func (o *observed) running(setUp bool) { o.change(func() { o.setUp = setUp }) }

func (o *observed) change(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	waiting := slices.Contains(slices.Collect(maps.Values(o.waiting)), true)
	runningGauge.WithLabelValues(o.component).Set(number(o.setUp && !waiting))
}

// GetEventRecorder implements cluster.Cluster.
func (o *observed) GetEventRecorder(name string) recorder.EventRecorder {
	return redact.Recorder(o.Manager.GetEventRecorder(name))
}

// GetCache implements cluster.Cluster.
func (o *observed) GetCache() cache.Cache { return &awaited{o.Manager.GetCache(), o} }

// awaited is a cache that reports which kinds a component waits for. Informers are returned when they have synced, so one that never
// is, for want of a right, shows as a component that does not run.
type awaited struct {
	cache.Cache
	by *observed
}

// GetInformer implements cache.Informers.
func (a *awaited) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind())
	a.by.change(func() {
		if _, known := a.by.waiting[kind]; !known {
			a.by.waiting[kind] = true
		}
	})
	i, err := a.Cache.GetInformer(ctx, obj, opts...)
	if err == nil {
		a.by.change(func() { a.by.waiting[kind] = false })
	}
	return i, err
}
