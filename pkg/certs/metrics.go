package certs

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the label "certificate".
const (
	servingCertificateLabel = "webhook-serving"
	caCertificateLabel      = "webhook-ca"
)

// expiryGauge reports the expiry of the certificates that this replica holds in memory.
var expiryGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_certificate_expiry_timestamp_seconds",
	Help: "Expiry of a certificate of the manager, in seconds since the Unix epoch.",
}, []string{"certificate"})

// injectedGauge reports for each target whether the API server trusts its webhooks. It is 1 for an absent optional target.
var injectedGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_webhook_ca_injected",
	Help: "1 while a webhook configuration or CRD contains the CA of the webhook certificate, 0 while it does not or the manager cannot write it.",
}, []string{"kind", "name"})

func recordInjection(target Target, injected bool) {
	injectedGauge.WithLabelValues(target.Kind.Kind, target.Name).Set(map[bool]float64{true: 1}[injected])
}

func recordExpiry(p *certificatePair) {
	expiryGauge.WithLabelValues(servingCertificateLabel).Set(float64(p.leaf.Expires.Unix()))
	expiryGauge.WithLabelValues(caCertificateLabel).Set(float64(p.root.Expires.Unix()))
}
