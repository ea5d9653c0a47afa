package reconciler

import (
	"errors"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A field that an older CRD lacks is sent once for each resourceVersion, regardless of the result of a reconcile.
func TestRejectedFieldIsSentOnce(t *testing.T) {
	for name, end := range map[string]error{
		"done": nil, "at once": &Wait{For: "the field", Retry: time.Millisecond}, "for an event": &Wait{For: "an event"}, "failed": errors.New("broken"),
	} {
		t.Run(name, func(t *testing.T) {
			reconciles := 0
			b := newBench(t, Logic[*widget]{Phases: []Phase[*widget]{phase("measuring", func(w *widget) error {
				reconciles++
				w.Status.URL = "https://" + strconv.Itoa(reconciles) // changes like a timestamp
				set(w, available, metav1.ConditionTrue, "Up")
				return end
			})}}, newWidget())
			b.older = true
			for range 10 {
				result, err := b.reconcile()
				if wait, waits := AsWait(end); waits && wait.Retry > 0 && reconciles > 1 && result.RequeueAfter < RequeueBlocked || !waits && end != nil && err == nil {
					t.Fatalf("result %+v, error %v", result, err)
				}
			}
			if len(b.writes) != 1 {
				t.Errorf("%d writes: %v", len(b.writes), b.writes)
			}
			b.change(func(w *widget) { w.Labels = map[string]string{"touched": "yes"} })
			for range 10 {
				_, _ = b.reconcile() // checked above
			}
			if len(b.writes) != 2 {
				t.Errorf("%d writes after a change: %v", len(b.writes), b.writes)
			}
			b.older = false
			b.change(func(w *widget) { w.Labels = nil })
			if _, _ = b.reconcile(); b.get().Status.URL == "" {
				t.Error("status.url was not stored, although the CRD has it")
			}
		})
	}
}

// Fields that the older CRD has are still patched.
func TestFieldsWithoutRejectedOnesAreStored(t *testing.T) {
	status := metav1.ConditionTrue
	b := newBench(t, Logic[*widget]{Phases: []Phase[*widget]{phase("measuring", func(w *widget) error {
		w.Status.URL = "https://example.com"
		set(w, available, status, "Measured")
		return nil
	})}}, newWidget())
	b.older = true
	for range 3 {
		b.must()
	}
	status = metav1.ConditionFalse
	if writes := b.must() + b.must(); writes != 1 {
		t.Errorf("%d writes of another condition", writes)
	}
	if c := b.get().Status.Conditions; len(c) == 0 || c[0].Status != metav1.ConditionFalse {
		t.Errorf("got conditions %+v, want the fields that the API server accepts", c)
	}
}

func TestDiff(t *testing.T) {
	a, b := newWidget(), newWidget()
	set(a, available, metav1.ConditionTrue, "Up")
	set(b, available, metav1.ConditionTrue, "Down")
	b.Status.ObservedGeneration = 7
	got := statusDiff(a, b)
	if !got.HasAll("status.observedGeneration", "status.conditions[].reason", "status.conditions[].message") || got.Len() != 3 {
		t.Error(got)
	}
}
