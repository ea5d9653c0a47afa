package reconciler

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// A kind with its own condition type gets pause, status patch, events and metrics through Conditions.
func TestCustomConditionType(t *testing.T) {
	var calls []string
	b := newBench(t, sized(), newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
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
			standard[*widget]().Set(w, c)
		},
		Remove: func(w *widget, kind string) {
			calls = append(calls, "remove "+kind)
			standard[*widget]().Remove(w, kind)
		},
	}
	b.reconciler = NewWith(Options{Client: b.client, Recorder: b.recorder, Component: t.Name()}, sized(), access)
	b.must()
	b.change(func(w *widget) { w.Annotations = nil })
	if _, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ", "); got != "set Paused True, set Ready Unknown, "+
		"remove Paused, remove Stalled, remove Reconciled, set Ready True, remove Reconciling, remove Stalled" {
		t.Errorf("calls: %s", got)
	}
	if got := strings.Join(b.events(), "\n"); !strings.Contains(got, "SeenAnnotation") || !strings.Contains(got, "SeenMeasured") {
		t.Errorf("events do not see the conditions as the kind shows them:\n%s", got)
	}
	for _, c := range b.get().Status.Conditions {
		if strings.HasPrefix(c.Reason, "Seen") && c.Type != conditions.Ready { // Ready repeats the others
			t.Errorf("what is shown was written: %+v", c)
		}
	}
}
