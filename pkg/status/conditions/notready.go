package conditions

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Suspended is the reason of Ready while a user or a queue suspends an object. Such an object has no series.
const Suspended = "Suspended"

// deletingResources is True while an AppWrapper deletes its objects, in several phases. Its reason lets alerts find deletions that hang.
const deletingResources = "DeletingResources"

// notReady has a series only for objects that are neither ready nor suspended, to limit the cardinality.
var notReady = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_resource_not_ready",
	Help: "1 for each custom resource that is not suspended and whose condition Ready is not True, by the reason of the condition, or of DeletingResources while that is True.",
}, []string{"component", "kind", "namespace", "name", "reason"})

// NotReadySeries maintains the metric for the objects of one kind. It is safe for concurrent use.
type NotReadySeries struct {
	component, kind string

	mu      sync.Mutex
	reasons map[types.NamespacedName]string
}

// NewNotReadySeries returns the series of a kind.
func NewNotReadySeries(component, kind string) *NotReadySeries {
	return &NotReadySeries{component: component, kind: kind, reasons: map[types.NamespacedName]string{}}
}

// Observe updates the metric for an object. An object without the condition Ready gets no series.
func (s *NotReadySeries) Observe(name types.NamespacedName, list []metav1.Condition) {
	reason := ""
	for _, c := range list {
		if c.Type == Ready && c.Status != metav1.ConditionTrue && c.Reason != Suspended {
			reason = c.Reason
		}
	}
	if c := meta.FindStatusCondition(list, deletingResources); c != nil && c.Status == metav1.ConditionTrue && reason != "" {
		reason = c.Reason
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	previous, found := s.reasons[name]
	if found && previous == reason {
		return
	}
	s.deleteSeries(name)
	if reason != "" {
		s.reasons[name] = reason
		notReady.WithLabelValues(s.component, s.kind, name.Namespace, name.Name, reason).Set(1)
	}
}

// Forget deletes the series of a deleted object.
func (s *NotReadySeries) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteSeries(name)
}

func (s *NotReadySeries) deleteSeries(name types.NamespacedName) {
	if reason, found := s.reasons[name]; found {
		notReady.DeleteLabelValues(s.component, s.kind, name.Namespace, name.Name, reason)
		delete(s.reasons, name)
	}
}
