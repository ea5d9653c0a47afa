package reconciler

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// seriesOf counts the series of a component.
func seriesOf(t *testing.T, component string) int {
	t.Helper()
	collected := make(chan prometheus.Metric, 1000)
	conditionsGauge().Collect(collected)
	close(collected)
	n := 0
	for sample := range collected {
		var m dto.Metric
		if err := sample.Write(&m); err != nil {
			t.Fatal(err)
		}
		for _, l := range m.GetLabel() {
			if l.GetName() == "component" && l.GetValue() == component {
				n++
			}
		}
	}
	return n
}

// A component that rests shows nothing, and counts from zero when it comes back, whatever it had counted.
func TestConditionsOfAComponentThatRests(t *testing.T) {
	available := []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
	first, other := newLedger("rests", "Widget", clock.RealClock{}), newLedger("stays", "Widget", clock.RealClock{})
	for _, l := range []*ledger{first, other} {
		l.observe(types.NamespacedName{Name: "a"}, "uid", available)
	}
	ForgetConditions("rests")
	if got := seriesOf(t, "rests"); got != 0 {
		t.Errorf("%d series are left", got)
	}
	if got := seriesOf(t, "stays"); got != 1 {
		t.Errorf("%d series of another component, want 1", got)
	}
	newLedger("rests", "Widget", clock.RealClock{}).observe(types.NamespacedName{Name: "a"}, "uid", available)
	var m dto.Metric
	if err := conditionsGauge().WithLabelValues("rests", "Widget", "Available", "True").Write(&m); err != nil {
		t.Fatal(err)
	}
	if got := m.GetGauge().GetValue(); got != 1 {
		t.Errorf("%v objects are available, want 1", got)
	}
}
