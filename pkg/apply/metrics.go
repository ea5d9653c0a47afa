package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The values of the verb label.
const (
	verbApply   = "apply"
	verbAdopt   = "adopt"
	verbRelease = "release"
	verbDelete  = "delete"
	verbPatch   = "patch"
	verbCreate  = "create"
)

var (
	writes = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_writes_total",
		Help: "Write requests for the objects that components make, by component, kind and verb (apply, adopt, release, delete, patch, create).",
	}, []string{"component", "kind", "verb"})
	skipped = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_skipped_total",
		Help: "Objects that needed no write because they were settled, by component and kind.",
	}, []string{"component", "kind"})
)

func (a *Applier) wrote(kind, verb string) {
	writes.WithLabelValues(a.Component, kind, verb).Inc()
}

func (a *Applier) skip(kind string) {
	skipped.WithLabelValues(a.Component, kind).Inc()
}
