package component

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
)

func valueOf(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetGauge().GetValue() + out.GetCounter().GetValue()
}

// states returns the metrics of a component: enabled, running and failures.
func states(t *testing.T, name string) [3]float64 {
	t.Helper()
	return [3]float64{valueOf(t, enabledGauge.WithLabelValues(name)), valueOf(t, runningGauge.WithLabelValues(name)), valueOf(t, failuresCounter.WithLabelValues(name))}
}

func TestComponentMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := ray(&worker{})
		late.Name = "late"
		plain := Component{Name: "plain", Controllers: func(context.Context, ctrl.Manager) error { return nil }}
		disabled := Component{Name: "disabled", Controllers: plain.Controllers}
		failing := ray()
		failing.Name = "failing"
		failing.Controllers = func(context.Context, ctrl.Manager) error { return errors.New("no") }
		h := &testManager{newManager(t), &fakeCapabilities{}}
		enabled := func(name string) bool { return name != "disabled" }
		if err := Setup(h, h.caps, []Component{late, plain, disabled, failing}, enabled); err != nil {
			t.Fatal(err)
		}
		close(h.elected)
		defer h.start()()
		expect := func(name string, want [3]float64) {
			t.Helper()
			synctest.Wait()
			if got := states(t, name); got != want {
				t.Errorf("%s: got metrics %v for enabled, running and failures, want %v", name, got, want)
			}
		}
		expect("plain", [3]float64{1, 1, 0})
		expect("disabled", [3]float64{0, 0, 0})
		expect("late", [3]float64{1, 0, 0})
		h.serve()
		expect("late", [3]float64{1, 1, 0})
		expect("failing", [3]float64{1, 0, 1})
	})
}
