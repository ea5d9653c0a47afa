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
	values := map[string]float64{}
	for sample := range collected {
		var m dto.Metric
		if err := sample.Write(&m); err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		values[labels["namespace"]+"/"+labels["keys"]] = m.GetGauge().GetValue()
	}
	return values
}

// The gauge has a series for each watched namespace and value of the label `keys`. Forget deletes the series of a namespace.
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
	expect("both watches run", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1})
	f.stores["a"].fail(errors.New("etcd is down"))
	expect("both watches fail", map[string]float64{"fraud/vmodels": 0, "fraud/registry": 0})
	f.stores["a"].fail(nil)
	f.resume(t, 2)
	expect("both watches run again", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1})
	f.Ensure("home", "mesh")
	expect("the second namespace is watched", map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1, "home/vmodels": 1, "home/registry": 1})
	f.Forget("fraud")
	expect("the series of the forgotten namespace are deleted", map[string]float64{"home/vmodels": 1, "home/registry": 1})
	f.Ensure("home", "another")
	f.waitWatched(t, "a", "root/mm/another")
	expect("the new Service is watched", map[string]float64{"home/vmodels": 1, "home/registry": 1})
	f.Forget("home")
	expect("all series are deleted", map[string]float64{})
}
