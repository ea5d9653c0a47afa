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
	if existing, ok := mgr.(*instrumentedManager); ok && existing.component == component {
		existing.setControllersAdded(false)
		return existing
	}
	m := &instrumentedManager{Manager: mgr, component: component, unsynced: map[string]bool{}}
	enabledGauge.WithLabelValues(component).Set(boolToFloat(enabled))
	failuresCounter.WithLabelValues(component)
	m.setControllersAdded(false)
	return m
}

// setControllersAdded records whether the controllers were added.
func (m *instrumentedManager) setControllersAdded(added bool) {
	m.update(func() { m.controllersAdded = added })
}

func (m *instrumentedManager) update(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	syncing := slices.Contains(slices.Collect(maps.Values(m.unsynced)), true)
	runningGauge.WithLabelValues(m.component).Set(boolToFloat(m.controllersAdded && !syncing))
}

// GetEventRecorder implements cluster.Cluster.
func (m *instrumentedManager) GetEventRecorder(name string) recorder.EventRecorder {
	return redact.Recorder(m.Manager.GetEventRecorder(name))
}

// GetCache implements cluster.Cluster.
func (m *instrumentedManager) GetCache() cache.Cache {
	return &instrumentedCache{m.Manager.GetCache(), m}
}

// instrumentedCache records informers that are requested and not synced. GetInformer returns after the sync, which never happens without
// permission to list: the component then counts as not running.
type instrumentedCache struct {
	cache.Cache
	manager *instrumentedManager
}

// GetInformer implements cache.Informers.
func (c *instrumentedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	kind := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind())
	c.manager.update(func() {
		if _, found := c.manager.unsynced[kind]; !found {
			c.manager.unsynced[kind] = true
		}
	})
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	if err == nil {
		c.manager.update(func() { c.manager.unsynced[kind] = false })
	}
	return informer, err
}
