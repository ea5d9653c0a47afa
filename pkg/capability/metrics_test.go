package capability

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestServedKindsMetric(t *testing.T) {
	watchedKinds := []schema.GroupVersionKind{Route, HTTPRoute, KueueClusterQueue, KueueClusterQueueV1beta1}
	metricValue := func(k schema.GroupVersionKind) float64 {
		var m dto.Metric
		if err := servedGauge.WithLabelValues(k.Group, k.Version, k.Kind).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetGauge().GetValue()
	}
	for _, set := range []Set{NewSet(Route, KueueClusterQueue), NewSet(HTTPRoute, KueueClusterQueueV1beta1), {}} {
		(&Watcher{options: Options{Kinds: watchedKinds}}).setGauge(set)
		for _, k := range watchedKinds {
			if got, want := metricValue(k), map[bool]float64{true: 1}[set.Has(k)]; got != want {
				t.Errorf("metric of %s is %v, want %v while %s are served", k, got, want, set)
			}
		}
	}
}
