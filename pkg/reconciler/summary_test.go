package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// kstatusConditions returns the kstatus conditions with their reasons.
func kstatusConditions(w *widget) string {
	var out []string
	for _, conditionType := range []string{conditions.Ready, conditions.Reconciling, conditions.Stalled} {
		if c, found := conditions.Get(w.Status.Conditions, conditionType); found {
			out = append(out, conditionType+"="+string(c.Status)+" "+c.Reason)
		}
	}
	return strings.Join(out, ", ")
}

// Ready depends on conditions, waits and errors. A repeated reconcile writes nothing.
func TestReadyWithWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		available metav1.ConditionStatus
		err       error
		want      string
	}{
		"available":                 {metav1.ConditionTrue, nil, "Ready=True Up"},
		"waiting for a later time":  {metav1.ConditionTrue, &Wait{For: "the renewal of the certificate", Retry: time.Hour}, "Ready=True Up"},
		"rollout in progress":       {metav1.ConditionTrue, &Wait{For: "the rollout", Unready: true}, "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress"},
		"rollout and a later time":  {metav1.ConditionTrue, errors.Join(&Wait{For: "later", Retry: time.Hour}, &Wait{For: "the rollout", Unready: true}), "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress"},
		"rollout stalled":           {metav1.ConditionTrue, &Wait{For: "the rollout", Stalled: true}, "Ready=False RolloutInProgress, Stalled=True RolloutInProgress"},
		"waiting for pods":          {metav1.ConditionFalse, &Wait{For: "pods"}, "Ready=False Down, Reconciling=True Down"},
		"waiting for the user":      {metav1.ConditionFalse, &Wait{For: "a valid spec", Stalled: true}, "Ready=False Down, Stalled=True Down"},
		"invalid request":           {metav1.ConditionTrue, invalidErr, "Ready=False RequestInvalid, Stalled=True RequestInvalid"},
		"error without a condition": {metav1.ConditionTrue, internalErr, "Ready=False ReconcileError"},
	} {
		t.Run(name, func(t *testing.T) {
			err, status := tc.err, tc.available
			logic := logicWithError(&err)
			logic.Summary = func(w *widget) {
				reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Up", metav1.ConditionFalse: "Down"}[status]
				set(w, available, status, reason)
			}
			f := newFixture(t, logic, newWidget())
			for range 3 {
				_, _ = f.reconcile() // other tests check the result
			}
			if got := kstatusConditions(f.get()); got != tc.want || len(f.writes) != 1 {
				t.Errorf("got %s after %d writes, want %s after 1", got, len(f.writes), tc.want)
			}
			for _, e := range f.events() {
				if strings.Contains(e, "Ready is") || strings.Contains(e, "Reconciling is") || strings.Contains(e, "Stalled is") && !strings.Contains(e, "RequestInvalid") &&
					!strings.Contains(e, "RolloutInProgress") {
					t.Errorf("event %q repeats that of another condition", e)
				}
			}
			err, status = nil, metav1.ConditionTrue
			f.mustReconcile()
			if got := kstatusConditions(f.get()); got != "Ready=True Up" {
				t.Errorf("got %s after the wait, want ready", got)
			}
		})
	}
}

// A ready condition of an older generation does not make the object ready.
func TestReadyConditionOfOlderGenerationIsNotReady(t *testing.T) {
	evaluated := true
	logic := Logic[*widget]{Phases: []Phase[*widget]{phase("evaluating", func(w *widget) error {
		if evaluated {
			set(w, available, metav1.ConditionTrue, "Up")
		}
		return nil
	})}}
	f := newFixture(t, logic, newWidget())
	f.mustReconcile()
	evaluated = false
	f.change(func(w *widget) { w.Generation = 2 })
	f.mustReconcile()
	if got := kstatusConditions(f.get()); got != "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress" {
		t.Errorf("got %s", got)
	}
	evaluated = true
	f.mustReconcile()
	if got := kstatusConditions(f.get()); got != "Ready=True Up" {
		t.Errorf("got %s", got)
	}
}

// An object that is paused before its first reconcile is not ready; one that is paused later keeps its conditions.
func TestPausedAndReady(t *testing.T) {
	pause := func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }
	f := newFixture(t, measuringLogic(), newWidget(pause))
	f.mustReconcile()
	if got := kstatusConditions(f.get()); got != "Ready=Unknown Paused" || f.mustReconcile() != 0 {
		t.Errorf("got %s", got)
	}
	f.change(func(w *widget) { w.Annotations = nil })
	f.mustReconcile()
	f.change(pause)
	f.mustReconcile()
	if got := kstatusConditions(f.get()); got != "Ready=True Up" {
		t.Errorf("got %s", got)
	}
}

// For a kind whose Logic sets Ready, waits set only Stalled, and Ready has an event.
func TestLogicThatSetsReady(t *testing.T) {
	var err error = &Wait{For: "a complete spec", Stalled: true}
	logic := logicWithError(&err)
	logic.ReadyCondition = conditions.Ready
	logic.Summary = func(w *widget) { set(w, conditions.Ready, metav1.ConditionFalse, "ConfigPending") }
	f := newFixture(t, logic, newWidget())
	f.mustReconcile()
	if got := kstatusConditions(f.get()); got != "Ready=False ConfigPending, Stalled=True ConfigPending" {
		t.Errorf("got %s", got)
	}
	if got := f.events(); len(got) != 1 || !strings.Contains(got[0], "Ready is False") {
		t.Errorf("got events %q, want one for Ready", got)
	}
	if list := f.get().Status.Conditions; slices.ContainsFunc(list, func(c metav1.Condition) bool { return c.Type == conditions.Reconciling }) {
		t.Errorf("got conditions %+v, want none of type Reconciling", list)
	}
}
