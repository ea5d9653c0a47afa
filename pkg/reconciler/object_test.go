package reconciler

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// A kind with its own type of conditions is paused, patched and reported in Events through Conditions.
func TestCustomConditionType(t *testing.T) {
	var calls []string
	f := newFixture(t, measuringLogic(), newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
	access := Conditions[*widget]{
		List: func(w *widget) []metav1.Condition {
			var out []metav1.Condition
			for _, c := range w.Status.Conditions {
				c.Reason = "Seen" + c.Reason
				out = append(out, c)
			}
			return out
		},
		Set: func(w *widget, c metav1.Condition) {
			calls = append(calls, "set "+c.Type+" "+string(c.Status))
			standardConditions[*widget]().Set(w, c)
		},
		Remove: func(w *widget, conditionType string) {
			calls = append(calls, "remove "+conditionType)
			standardConditions[*widget]().Remove(w, conditionType)
		},
	}
	f.reconciler = NewWith(Options{Client: f.client, Recorder: f.recorder, Component: t.Name()}, measuringLogic(), access)
	f.mustReconcile()
	f.change(func(w *widget) { w.Annotations = nil })
	if _, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ", "); got != "set Paused True, set Ready Unknown, "+
		"remove Paused, remove Stalled, remove Reconciled, set Ready True, remove Reconciling, remove Stalled" {
		t.Errorf("got calls %s", got)
	}
	if got := strings.Join(f.events(), "\n"); !strings.Contains(got, "SeenAnnotation") || !strings.Contains(got, "SeenMeasured") {
		t.Errorf("events do not have the reasons that List returns:\n%s", got)
	}
	for _, c := range f.get().Status.Conditions {
		if strings.HasPrefix(c.Reason, "Seen") && c.Type != conditions.Ready { // Ready copies the reasons of the others
			t.Errorf("a condition of List was written: %+v", c)
		}
	}
}
