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

// conditionsGauge counts the objects in each state. Objects that are not ready are named by the metric of package conditions.
var conditionsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_conditions",
	Help: "Number of custom resources by component, kind, condition type and condition status.",
}, []string{"component", "kind", "condition", "status"})

// record is what the shell remembers of one object.
type record struct {
	uid    types.UID
	states map[string]metav1.ConditionStatus
	// written is the resourceVersion of the last status that the shell wrote, and at is when; empty when it wrote none.
	written string
	at      time.Time
}

// ledger remembers the uid of each object by its name, which is all that is left when an object is gone, and keeps the
// gauge right. It holds one small record per living object.
type ledger struct {
	gauge           *prometheus.GaugeVec
	component, kind string
	clock           clock.PassiveClock
	series          *conditions.Series

	mu      sync.Mutex
	records map[types.NamespacedName]record
}

// newLedger returns a ledger for one kind.
func newLedger(component, kind string, clk clock.PassiveClock) *ledger {
	return &ledger{
		gauge:     conditionsGauge,
		component: component,
		kind:      kind,
		clock:     clk,
		series:    conditions.NewSeries(component, kind),
		records:   map[types.NamespacedName]record{},
	}
}

// observe notes the present conditions of an object. When another object had the name before, its uid is returned.
func (l *ledger) observe(name types.NamespacedName, uid types.UID, conditions []metav1.Condition) (gone types.UID, replaced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.records[name]
	l.count(old.states, -1)
	l.series.Observe(name, conditions)
	states := make(map[string]metav1.ConditionStatus, len(conditions))
	for _, c := range conditions {
		states[c.Type] = c.Status
	}
	l.count(states, 1)
	now := record{uid: uid, states: states}
	if old.uid == uid {
		now.written, now.at = old.written, old.at
	}
	l.records[name] = now
	return old.uid, known && old.uid != uid
}

// wrote notes the resourceVersion that a status patch led to. The object has been observed before.
func (l *ledger) wrote(name types.NamespacedName, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.records[name]
	entry.written, entry.at = version, l.clock.Now()
	l.records[name] = entry
}

// maxLag is how long after a write a cache is believed to be behind it. After a restore of etcd the versions of objects are lower
// than the one that was written, and stay so.
const maxLag = 10 * time.Second

// behind says that an object, as the cache has it, is older than the last status written to it.
func (l *ledger) behind(obj client.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.records[client.ObjectKeyFromObject(obj)]
	if last.uid != obj.GetUID() || last.written == "" || l.clock.Since(last.at) >= maxLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.written)
	return err == nil && order < 0
}

// forget drops an object and returns its uid, if it was known.
func (l *ledger) forget(name types.NamespacedName) (types.UID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.records[name]
	l.count(old.states, -1)
	l.series.Forget(name)
	delete(l.records, name)
	return old.uid, known
}

func (l *ledger) count(states map[string]metav1.ConditionStatus, by float64) {
	for condition, status := range states {
		l.gauge.WithLabelValues(l.component, l.kind, condition, string(status)).Add(by)
	}
}
