package conditions

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Suspended is the reason of Ready while an object rests because a user or a queue wants it. It is no fault.
const Suspended = "Suspended"

// notReady has a series for each object that is not ready, and none for those that are or that rest: as many as there are faults.
var notReady = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_resource_not_ready",
	Help: "1 for each custom resource whose condition Ready is not True, by the reason of the condition.",
}, []string{"component", "kind", "namespace", "name", "reason"})

// Series keeps the metric right for the objects of one kind. It is safe for concurrent use.
type Series struct {
	component, kind string

	mu      sync.Mutex
	reasons map[types.NamespacedName]string
}

// NewSeries returns the series of a kind.
func NewSeries(component, kind string) *Series {
	return &Series{component: component, kind: kind, reasons: map[types.NamespacedName]string{}}
}

// Observe notes the conditions of an object. One without Ready is not judged.
func (s *Series) Observe(name types.NamespacedName, list []metav1.Condition) {
	reason := ""
	for _, c := range list {
		if c.Type == Ready && c.Status != metav1.ConditionTrue && c.Reason != Suspended {
			reason = c.Reason
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.reasons[name]
	if had && before == reason {
		return
	}
	s.drop(name)
	if reason != "" {
		s.reasons[name] = reason
		notReady.WithLabelValues(s.component, s.kind, name.Namespace, name.Name, reason).Set(1)
	}
}

// Forget ends the series of an object that is gone.
func (s *Series) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(name)
}

func (s *Series) drop(name types.NamespacedName) {
	if reason, had := s.reasons[name]; had {
		notReady.DeleteLabelValues(s.component, s.kind, name.Namespace, name.Name, reason)
		delete(s.reasons, name)
	}
}
