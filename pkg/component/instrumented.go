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

// instrumentedManager is the manager of one component. It redacts events, and records which informers are not synced yet for the gauge of
// running components.
type instrumentedManager struct {
	ctrl.Manager
	component string

	mu               sync.Mutex
	controllersAdded bool
	unsynced         map[string]bool // by kind of the requested informers
}

// instrument wraps the manager and initializes the metrics of a component. All parts of a component share one wrapper.
func instrument(mgr ctrl.Manager, component string, enabled bool) *instrumentedManager {
	if whole, ok := mgr.(*instrumentedManager); ok && whole.component == component {
		whole.setControllersAdded(false)
		return whole
	}
	o := &instrumentedManager{Manager: mgr, component: component, unsynced: map[string]bool{}}
	enabledGauge.WithLabelValues(component).Set(boolToFloat(enabled))
	failuresCounter.WithLabelValues(component)
	o.setControllersAdded(false)
	return o
}

// setControllersAdded records whether the controllers were added.
func (o *instrumentedManager) setControllersAdded(setUp bool) {
	o.update(func() { o.controllersAdded = setUp })
}

func (o *instrumentedManager) update(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	waiting := slices.Contains(slices.Collect(maps.Values(o.unsynced)), true)
	runningGauge.WithLabelValues(o.component).Set(boolToFloat(o.controllersAdded && !waiting))
}

// GetEventRecorder implements cluster.Cluster.
func (o *instrumentedManager) GetEventRecorder(name string) recorder.EventRecorder {
	return redact.Recorder(o.Manager.GetEventRecorder(name))
}

// GetCache implements cluster.Cluster.
func (o *instrumentedManager) GetCache() cache.Cache {
	return &instrumentedCache{o.Manager.GetCache(), o}
}

// instrumentedCache records informers that are requested and not synced. GetInformer returns after the sync, which never happens without
// permission to list: the component then counts as not running.
type instrumentedCache struct {
	cache.Cache
	manager *instrumentedManager
}

// GetInformer implements cache.Informers.
func (a *instrumentedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind())
	a.manager.update(func() {
		if _, known := a.manager.unsynced[kind]; !known {
			a.manager.unsynced[kind] = true
		}
	})
	i, err := a.Cache.GetInformer(ctx, obj, opts...)
	if err == nil {
		a.manager.update(func() { a.manager.unsynced[kind] = false })
	}
	return i, err
}
