package reconciler

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// conditionsGauge counts the objects by condition status. The metric of package conditions names the objects that are not ready.
var conditionsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_conditions",
	Help: "Number of custom resources by component, kind, condition type and condition status.",
}, []string{"component", "kind", "condition", "status"})

// trackedObject is the state stored for one object.
type trackedObject struct {
	uid        types.UID
	conditions map[string]metav1.ConditionStatus
	// writtenVersion is the resourceVersion of the last status update, empty if there was none.
	writtenVersion string
	writtenAt      time.Time
}

// objectTracker stores the uid of each object by its name, because NotFound carries only the name, and maintains the metrics of the
// conditions. It holds one entry per existing object.
type objectTracker struct {
	component, kind string
	clock           clock.PassiveClock
	series          *conditions.NotReadySeries

	mu      sync.Mutex
	objects map[types.NamespacedName]trackedObject
}

func newObjectTracker(component, kind string, clk clock.PassiveClock) *objectTracker {
	return &objectTracker{
		component: component, kind: kind, clock: clk, series: conditions.NewNotReadySeries(component, kind), objects: map[types.NamespacedName]trackedObject{},
	}
}

// track stores the current conditions of an object. If another object had the name before, its uid is returned.
func (t *objectTracker) track(name types.NamespacedName, uid types.UID, list []metav1.Condition) (previousUID types.UID, replaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	previous, found := t.objects[name]
	t.addToGauge(previous.conditions, -1)
	t.series.Observe(name, list)
	current := trackedObject{uid: uid, conditions: make(map[string]metav1.ConditionStatus, len(list))}
	for _, c := range list {
		current.conditions[c.Type] = c.Status
	}
	t.addToGauge(current.conditions, 1)
	if previous.uid == uid {
		current.writtenVersion, current.writtenAt = previous.writtenVersion, previous.writtenAt
	}
	t.objects[name] = current
	return previous.uid, found && previous.uid != uid
}

// setWritten stores the resourceVersion that a status patch returned for a tracked object.
func (t *objectTracker) setWritten(name types.NamespacedName, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	object := t.objects[name]
	object.writtenVersion, object.writtenAt = version, t.clock.Now()
	t.objects[name] = object
}

// maxCacheLag limits how long after a status update an older version counts as stale. After a restore of etcd all versions are lower than
// the written one.
const maxCacheLag = 10 * time.Second

// isStale reports whether an object from the cache is older than the last status update.
func (t *objectTracker) isStale(obj client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	tracked := t.objects[client.ObjectKeyFromObject(obj)]
	if tracked.uid != obj.GetUID() || tracked.writtenVersion == "" || t.clock.Since(tracked.writtenAt) >= maxCacheLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), tracked.writtenVersion)
	return err == nil && order < 0
}

// remove deletes the entry of an object and returns its uid, if there was one.
func (t *objectTracker) remove(name types.NamespacedName) (types.UID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	object, found := t.objects[name]
	t.addToGauge(object.conditions, -1)
	t.series.Forget(name)
	delete(t.objects, name)
	return object.uid, found
}

func (t *objectTracker) addToGauge(states map[string]metav1.ConditionStatus, delta float64) {
	for condition, status := range states {
		conditionsGauge.WithLabelValues(t.component, t.kind, condition, string(status)).Add(delta)
	}
}
