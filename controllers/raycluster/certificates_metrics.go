package raycluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// expiry shows when the certificates of clusters end, those of other issuers too.
var expiry = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_raycluster_certificate_expiry_timestamp_seconds",
	Help: "Unix time at which a certificate of a RayCluster expires, by namespace, name and role of the certificate: authority, head, worker or proxy.",
}, []string{"namespace", "name", "certificate"})

func observe(cluster types.NamespacedName, role string, expires time.Time) {
	expiry.WithLabelValues(cluster.Namespace, cluster.Name, role).Set(float64(expires.Unix()))
}

func unobserve(cluster types.NamespacedName, role string) {
	expiry.DeleteLabelValues(cluster.Namespace, cluster.Name, role)
}
