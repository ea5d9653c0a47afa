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
		Help: "Calls to routing layers of ModelMesh, by method and code of gRPC; NoAddress is for those that no pod could have answered.",
	}, []string{"method", "code"})
	clientsGauge = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "odh_platform_modelmesh_clients",
		Help: "Namespaces with a client of the routing layer of ModelMesh.",
	})
)

func outcome(err error) string {
	if errors.Is(err, ErrNoAddress) {
		return noAddress
	}
	return status.Code(err).String()
}
