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

// settling returns a bench whose updates may wait while Available is not True, with its clock. step is called in each reconcile.
func settling(t *testing.T, step func(*widget) error) (*bench, *testingclock.FakePassiveClock) {
	t.Helper()
	b := newBench(t, Logic[*widget]{
		Phases:  []Phase[*widget]{phase("starting", step)},
		MayWait: func(_, updated *widget) bool { return !conditions.IsTrue(updated.Status.Conditions, available) },
	}, newWidget())
	clk := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	b.reconciler.(*baseReconciler[*widget]).writes = NewStatusWrites(clk, SettleTime)
	return b, clk
}

// Of the states that follow each other within a second while pods start, the last one is stored.
func TestFollowingStatesCostOneUpdate(t *testing.T) {
	reason, status := "", metav1.ConditionFalse
	b, clk := settling(t, func(w *widget) error {
		set(w, available, status, reason)
		return nil
	})
	step := func(next string, writes int, after time.Duration) {
		t.Helper()
		reason = next
		before := len(b.writes)
		result, err := b.reconcile()
		if err != nil || len(b.writes)-before != writes || result.RequeueAfter != after {
			t.Fatalf("%s: %d writes, again in %s, error %v; want %d writes, again in %s", next, len(b.writes)-before, result.RequeueAfter, err, writes, after)
		}
	}
	step("Created", 0, time.Second)
	clk.SetTime(clk.Now().Add(600 * time.Millisecond))
	step("Pulling", 0, 400*time.Millisecond)
	clk.SetTime(clk.Now().Add(400 * time.Millisecond))
	step("Starting", 1, 0)
	step("Starting", 0, 0)
	if c, _ := conditions.Get(b.get().Status.Conditions, available); c.Reason != "Starting" {
		t.Errorf("stored %+v", c)
	}
	step("Probing", 0, time.Second)
	status = metav1.ConditionTrue // never waits
	step("Up", 1, 0)
	clk.SetTime(clk.Now().Add(time.Minute))
	step("Up", 0, 0)
}

// Errors, stalls and records on which the next attempt depends are stored immediately.
func TestErrorsAndStallsAreStoredAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		end   error
		waits bool
	}{
		"done":     {nil, true},
		"waiting":  {&Wait{For: "pods"}, true},
		"stalled":  {&Wait{For: "a valid spec", Stalled: true}, false},
		"failed":   {errors.New("broken"), false},
		"terminal": {reconcile.TerminalError(errors.New("invalid")), false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := settling(t, func(w *widget) error {
				set(w, available, metav1.ConditionFalse, "Down")
				return tc.end
			})
			result, _ := b.reconcile() // its error is that of the phase
			if deferred := len(b.writes) == 0; deferred != tc.waits || deferred && result.RequeueAfter != SettleTime {
				t.Errorf("%d writes, result %+v", len(b.writes), result)
			}
		})
	}
}
