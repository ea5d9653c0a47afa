package events

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// gaugeValues returns the values of the gauge by namespace and keys.
func gaugeValues(t *testing.T) map[string]float64 {
	t.Helper()
	collected := make(chan prometheus.Metric, 16)
	watchingGauge.Collect(collected)
	close(collected)
	out := map[string]float64{}
	for sample := range collected {
		var m dto.Metric
		if err := sample.Write(&m); err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		out[labels["namespace"]+"/"+labels["keys"]] = m.GetGauge().GetValue()
	}
	return out
}

// The gauge has a series for each watched namespace, and none for a forgotten one.
func TestWatchingGauge(t *testing.T) {
	watchingGauge.Reset()
	f := newFixture(t)
	expect := func(description string, want map[string]float64) {
		t.Helper()
		poll.Until(t, 30*time.Second, description, func() bool { return maps.Equal(gaugeValues(t), want) })
	}
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.start(t)
	expect("both watches work", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1})
	f.stores["a"].fail(errors.New("no etcd"))
	expect("both watches fail", map[string]float64{"fraud/vmodels": 0, "fraud/registry": 0})
	f.stores["a"].fail(nil)
	f.resume(t, 2)
	expect("both watches work again", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1})
	f.Ensure("home", "mesh")
	expect("another namespace", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1, "home/vmodels": 1, "home/registry": 1})
	f.Forget("fraud")
	expect("one has gone", map[string]float64{"home/vmodels": 1, "home/registry": 1})
	f.Ensure("home", "another")
	expect("another Service takes over", map[string]float64{"home/vmodels": 1, "home/registry": 1})
	f.Forget("home")
	expect("no namespace is left", map[string]float64{})
}
