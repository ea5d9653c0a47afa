package component

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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
