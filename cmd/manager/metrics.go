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

// The values of the decision label.
const (
	decisionAllowed = "allowed"
	decisionRefused = "refused"
	decisionFailed  = "failed"
)

var (
	buildInfo = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "odh_platform_build_info",
		Help: "Always 1; the labels are the version of the program, the commit it was built from and the version of Go.",
	}, []string{"version", "revision", "goversion"})
	decisions = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_webhook_decisions_total",
		Help: "Responses to admission requests, by webhook path and decision (allowed, refused, or failed if the webhook could not evaluate the request).",
	}, []string{"webhook", "decision"})
)

func observeBuild() {
	buildInfo.WithLabelValues(programVersion(), revision(), runtime.Version()).Set(1)
}

// judged is a webhook server that counts decisions. The library counts answers by their HTTP status, which is 200 for a refusal.
type judged struct{ webhook.Server }

// Register implements webhook.Server.
func (j judged) Register(path string, hook http.Handler) {
	if a, ok := hook.(*admission.Webhook); ok && a.Handler != nil {
		a.Handler = counted(path, a.Handler)
		for _, decision := range []string{decisionAllowed, decisionRefused, decisionFailed} {
			decisions.WithLabelValues(path, decision)
		}
	}
	j.Server.Register(path, hook)
}

// counted counts the decisions of a handler.
func counted(path string, next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		decision := decisionFailed // which a panic leaves: the library turns it into an answer
		defer func() { decisions.WithLabelValues(path, decision).Inc() }()
		response := next.Handle(ctx, request)
		decision = decisionOf(response)
		return response
	}
}

// decisionOf tells a refusal by the rules from a request that could not be judged, for which the library answers with a status of 5xx.
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
