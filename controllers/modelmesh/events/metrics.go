package events

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// keysVModels and keysRegistry are the values of the label "keys".
const keysVModels, keysRegistry = "vmodels", "registry"

var watching = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_modelmesh_etcd_watching",
	Help: "1 while the manager watches the ModelMesh keys of a namespace in etcd, 0 while the watch fails and is retried, by namespace and keys (vmodels, registry).",
}, []string{"namespace", "keys"})
