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

// observe shows each of the followed kinds as served or not.
func recordServed(followed []schema.GroupVersionKind, s Set) {
	for _, k := range followed {
		value := 0.0
		if s.Has(k) {
			value = 1
		}
		servedGauge.WithLabelValues(k.Group, k.Version, k.Kind).Set(value)
	}
}
