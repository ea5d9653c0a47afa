package reconciler

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// newDeferringFixture returns a fixture that defers status updates while Available is not True, and its clock. Each reconcile calls step.
func newDeferringFixture(t *testing.T, step func(*widget) error) (*fixture, *testingclock.FakePassiveClock) {
	t.Helper()
	f := newFixture(t, Logic[*widget]{
		Phases:  []Phase[*widget]{phase("starting", step)},
		MayWait: func(_, updated *widget) bool { return !conditions.IsTrue(updated.Status.Conditions, available) },
	}, newWidget())
	clk := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	f.reconciler.(*baseReconciler[*widget]).writes = NewStatusWrites(clk, SettleTime)
	return f, clk
}

// Status changes within SettleTime are stored in one update, with the last status.
func TestStatusChangesAreCombined(t *testing.T) {
	reason, status := "", metav1.ConditionFalse
	f, clk := newDeferringFixture(t, func(w *widget) error {
		set(w, available, status, reason)
		return nil
	})
	step := func(next string, writes int, after time.Duration) {
		t.Helper()
		reason = next
		before := len(f.writes)
		result, err := f.reconcile()
		if err != nil || len(f.writes)-before != writes || result.RequeueAfter != after {
			t.Fatalf("%s: got %d writes, requeue after %s, error %v; want %d writes, requeue after %s", next, len(f.writes)-before, result.RequeueAfter, err, writes, after)
		}
	}
	step("Created", 0, time.Second)
	clk.SetTime(clk.Now().Add(600 * time.Millisecond))
	step("Pulling", 0, 400*time.Millisecond)
	clk.SetTime(clk.Now().Add(400 * time.Millisecond))
	step("Starting", 1, 0)
	step("Starting", 0, 0)
	if c, _ := conditions.Get(f.get().Status.Conditions, available); c.Reason != "Starting" {
		t.Errorf("got stored condition %+v, want reason Starting", c)
	}
	step("Probing", 0, time.Second)
	status = metav1.ConditionTrue // is never deferred
	step("Up", 1, 0)
	clk.SetTime(clk.Now().Add(time.Minute))
	step("Up", 0, 0)
}

// The status is stored immediately if a phase fails or returns a Wait that is Stalled.
func TestErrorsAndStallsAreNotDeferred(t *testing.T) {
	for name, tc := range map[string]struct {
		phaseErr error
		deferred bool
	}{
		"done":     {nil, true},
		"waiting":  {&Wait{For: "pods"}, true},
		"stalled":  {&Wait{For: "a valid spec", Stalled: true}, false},
		"failed":   {errors.New("failed"), false},
		"terminal": {reconcile.TerminalError(errors.New("invalid")), false},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newDeferringFixture(t, func(w *widget) error {
				set(w, available, metav1.ConditionFalse, "Down")
				return tc.phaseErr
			})
			result, _ := f.reconcile() // the error is phaseErr
			if deferred := len(f.writes) == 0; deferred != tc.deferred || deferred && result.RequeueAfter != SettleTime {
				t.Errorf("got %d writes and result %+v, want deferred %t", len(f.writes), result, tc.deferred)
			}
		})
	}
}
