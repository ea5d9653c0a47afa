package reconciler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
}

// objectTracker stores the uid of each object by its name, because NotFound carries only the name, and maintains the metrics of the
// conditions. It holds one entry per existing object.
type objectTracker struct {
	component, kind string
	series          *conditions.NotReadySeries

	mu      sync.Mutex
	objects map[types.NamespacedName]trackedObject
}

func newObjectTracker(component, kind string) *objectTracker {
	return &objectTracker{component: component, kind: kind, series: conditions.NewNotReadySeries(component, kind), objects: map[types.NamespacedName]trackedObject{}}
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
	t.objects[name] = current
	return previous.uid, found && previous.uid != uid
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
