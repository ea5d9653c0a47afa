package component

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	enabledGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_component_enabled",
		Help: "1 for a component that is switched on, 0 for one that is off.",
	}, []string{"component"})
	runningGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_component_running",
		Help: "1 while the controllers of a component are set up and have filled their caches, 0 while it is off, waits for APIs that it requires or for rights, has failed, or another replica leads.",
	}, []string{"component"})
	failures = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_component_failures_total",
		Help: "Times that a component could not be set up, and was tried again.",
	}, []string{"component"})
)

// observeSwitch shows a component before anything of it runs.
func observeSwitch(name string, enabled bool) {
	enabledGauge.WithLabelValues(name).Set(number(enabled))
	observeRunning(name, false)
	failures.WithLabelValues(name)
}

func observeRunning(name string, running bool) {
	progress.change(name, func(s *state) { s.setUp = running })
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
