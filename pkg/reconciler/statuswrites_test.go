package reconciler

import (
	"errors"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A field that an older CRD lacks is sent once for each resourceVersion, whatever the phases return.
func TestDroppedFieldIsSentOnce(t *testing.T) {
	for name, phaseErr := range map[string]error{
		"done": nil, "wait with Retry": &Wait{For: "the field", Retry: time.Millisecond}, "wait for an event": &Wait{For: "an event"}, "failed": errors.New("failed"),
	} {
		t.Run(name, func(t *testing.T) {
			reconciles := 0
			f := newFixture(t, Logic[*widget]{Phases: []Phase[*widget]{phase("measuring", func(w *widget) error {
				reconciles++
				w.Status.URL = "https://" + strconv.Itoa(reconciles) // changes each time, like a timestamp
				set(w, available, metav1.ConditionTrue, "Up")
				return phaseErr
			})}}, newWidget())
			f.oldCRD = true
			for range 10 {
				result, err := f.reconcile()
				if wait, waits := AsWait(phaseErr); waits && wait.Retry > 0 && reconciles > 1 && result.RequeueAfter < RequeueBlocked || !waits && phaseErr != nil && err == nil {
					t.Fatalf("got result %+v, error %v", result, err)
				}
			}
			if len(f.writes) != 1 {
				t.Errorf("got %d writes, want 1: %v", len(f.writes), f.writes)
			}
			f.change(func(w *widget) { w.Labels = map[string]string{"touched": "yes"} })
			for range 10 {
				_, _ = f.reconcile() // the first loop checks the result
			}
			if len(f.writes) != 2 {
				t.Errorf("got %d writes after a change of the object, want 2: %v", len(f.writes), f.writes)
			}
			f.oldCRD = false
			f.change(func(w *widget) { w.Labels = nil })
			if _, _ = f.reconcile(); f.get().Status.URL == "" {
				t.Error("status.url was not stored, although the CRD has it")
			}
		})
	}
}

// Fields that an older CRD has are still patched.
func TestFieldsOtherThanDroppedOnesAreStored(t *testing.T) {
	status := metav1.ConditionTrue
	f := newFixture(t, Logic[*widget]{Phases: []Phase[*widget]{phase("measuring", func(w *widget) error {
		w.Status.URL = "https://example.com"
		set(w, available, status, "Measured")
		return nil
	})}}, newWidget())
	f.oldCRD = true
	for range 3 {
		f.mustReconcile()
	}
	status = metav1.ConditionFalse
	if writes := f.mustReconcile() + f.mustReconcile(); writes != 1 {
		t.Errorf("got %d writes of a changed condition, want 1", writes)
	}
	if c := f.get().Status.Conditions; len(c) == 0 || c[0].Status != metav1.ConditionFalse {
		t.Errorf("got conditions %+v, want the fields that the API server accepts", c)
	}
}

func TestStatusDiff(t *testing.T) {
	a, b := newWidget(), newWidget()
	set(a, available, metav1.ConditionTrue, "Up")
	set(b, available, metav1.ConditionTrue, "Down")
	b.Status.ObservedGeneration = 7
	got := statusDiff(a, b)
	if !got.HasAll("status.observedGeneration", "status.conditions[].reason", "status.conditions[].message") || got.Len() != 3 {
		t.Errorf("got paths %v, want observedGeneration, and reason and message of the condition", got)
	}
}
