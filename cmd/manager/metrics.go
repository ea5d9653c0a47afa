package main

import (
	"context"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Values of the label decision.
const (
	decisionAllowed = "allowed"
	decisionRefused = "refused"
	decisionFailed  = "failed"
)

var (
	buildInfoGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_build_info",
		Help: "Always 1; the labels are the version of the program, the commit it was built from and the version of Go.",
	}, []string{"version", "revision", "goversion"})
	decisionsCounter = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_webhook_decisions_total",
		Help: "Responses to admission requests, by webhook path and decision (allowed, refused for a reason in the request, or failed because of an internal error).",
	}, []string{"webhook", "decision"})
)

func recordBuildInfo() {
	buildInfoGauge.WithLabelValues(programVersion(), revision(), runtime.Version()).Set(1)
}

// instrumentedServer is a webhook server that counts decisions. The metrics of the library have only HTTP statuses, which are 200 for refusals.
type instrumentedServer struct{ webhook.Server }

// Register implements webhook.Server.
func (s instrumentedServer) Register(path string, hook http.Handler) {
	if a, ok := hook.(*admission.Webhook); ok && a.Handler != nil {
		a.Handler = countDecisions(path, a.Handler)
		for _, decision := range []string{decisionAllowed, decisionRefused, decisionFailed} {
			decisionsCounter.WithLabelValues(path, decision)
		}
	}
	s.Server.Register(path, hook)
}

// countDecisions wraps a handler to count its decisions.
func countDecisions(path string, next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		decision := decisionFailed // kept if the handler panics; the library recovers
		defer func() { decisionsCounter.WithLabelValues(path, decision).Inc() }()
		response := next.Handle(ctx, request)
		decision = decisionOf(response)
		return response
	}
}

// decisionOf returns the decision of a response. A status of 5xx is an internal error. Other statuses are refusals, even of a request that
// cannot be decoded or needs too many access reviews: users must not cause the alert for failures.
func decisionOf(response admission.Response) string {
	switch {
	case response.Allowed:
		return decisionAllowed
	case response.Result != nil && response.Result.Code >= http.StatusInternalServerError:
		return decisionFailed
	default:
		return decisionRefused
	}
}
