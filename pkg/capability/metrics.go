package capability

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var servedGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_api_served",
	Help: "1 while an optional kind is served by the API server, 0 while it is not, by group, version and kind.",
}, []string{"group", "version", "kind"})

// recordServed sets the metric of each kind.
func recordServed(kinds []schema.GroupVersionKind, s Set) {
	for _, k := range kinds {
		value := 0.0
		if s.Has(k) {
			value = 1
		}
		servedGauge.WithLabelValues(k.Group, k.Version, k.Kind).Set(value)
	}
}
