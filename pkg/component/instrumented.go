package component

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

var (
	enabledGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_component_enabled",
		Help: "1 for an enabled component, 0 for a disabled one.",
	}, []string{"component"})
	runningGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_component_running",
		Help: "1 while the controllers of a component run and their caches are filled, 0 while it is disabled, waits for APIs or permissions that it requires, has failed, or another replica is the leader.",
	}, []string{"component"})
	failuresCounter = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_component_failures_total",
		Help: "Failed attempts to set up a component, each of which is retried.",
	}, []string{"component"})
)

func boolToFloat(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// controllers is the entry of instrumentedManager.missing for the controllers; the other entries are informers.
const controllers = "controllers"

// instrumentedManager is the manager of one component. It redacts events, and maintains the gauge of running components.
type instrumentedManager struct {
	ctrl.Manager
	component string

	mu      sync.Mutex
	missing sets.Set[string] // the parts that the component waits for: its controllers, and informers that are not synced
}

// instrument wraps the manager and initializes the metrics of a component.
func instrument(mgr ctrl.Manager, component string, enabled bool) *instrumentedManager {
	m := &instrumentedManager{Manager: mgr, component: component, missing: sets.New[string]()}
	enabledGauge.WithLabelValues(component).Set(boolToFloat(enabled))
	failuresCounter.WithLabelValues(component)
	m.setReady(controllers, false)
	return m
}

// setReady records whether a part of the component is ready.
func (m *instrumentedManager) setReady(part string, ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing.Insert(part)
	if ready {
		m.missing.Delete(part)
	}
	runningGauge.WithLabelValues(m.component).Set(boolToFloat(m.missing.Len() == 0))
}

// GetEventRecorder implements cluster.Cluster.
func (m *instrumentedManager) GetEventRecorder(name string) recorder.EventRecorder {
	return redact.Recorder(m.Manager.GetEventRecorder(name))
}

// GetCache implements cluster.Cluster.
func (m *instrumentedManager) GetCache() cache.Cache {
	return &instrumentedCache{m.Manager.GetCache(), m}
}

// instrumentedCache records informers that are requested and not synced. GetInformer blocks until the informer is synced, for example until
// there is permission to list, and the component counts as not running. If ctx ends, the informer is no longer needed and does not count.
type instrumentedCache struct {
	cache.Cache
	manager *instrumentedManager
}

// GetInformer implements cache.Informers.
func (c *instrumentedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	part := fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind())
	c.manager.setReady(part, false)
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	c.manager.setReady(part, err == nil || ctx.Err() != nil)
	return informer, err
}
