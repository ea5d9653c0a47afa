package client

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// noAddress is the code of calls that were not made, because no pod could have answered.
const noAddress = "NoAddress"

var (
	calls = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_modelmesh_calls_total",
		Help: "Calls to ModelMesh routing layers, by gRPC method and code. NoAddress counts calls for which no pod was ready to answer.",
	}, []string{"method", "code"})
	clientsGauge = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "odh_platform_modelmesh_clients",
		Help: "Namespaces whose ModelMesh routing layer the manager is connected to.",
	})
)

func outcome(err error) string {
	if errors.Is(err, ErrNoAddress) {
		return noAddress
	}
	return status.Code(err).String()
}
