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

// states returns the kstatus conditions with their reasons.
func states(w *widget) string {
	var out []string
	for _, kind := range []string{conditions.Ready, conditions.Reconciling, conditions.Stalled} {
		if c, found := conditions.Get(w.Status.Conditions, kind); found {
			out = append(out, kind+"="+string(c.Status)+" "+c.Reason)
		}
	}
	return strings.Join(out, ", ")
}

// Waits and conditions decide whether the object is ready. A repeated reconcile writes nothing.
func TestWaitsAndReadiness(t *testing.T) {
	for name, tc := range map[string]struct {
		available metav1.ConditionStatus
		err       error
		want      string
	}{
		"available":                     {metav1.ConditionTrue, nil, "Ready=True Up"},
		"something is due later":        {metav1.ConditionTrue, &Wait{For: "the certificate to be due", Retry: time.Hour}, "Ready=True Up"},
		"pods are replaced":             {metav1.ConditionTrue, &Wait{For: "the rollout", Unready: true}, "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress"},
		"joined with a shorter requeue": {metav1.ConditionTrue, errors.Join(&Wait{For: "later", Retry: time.Hour}, &Wait{For: "the rollout", Unready: true}), "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress"},
		"pods cannot be replaced":       {metav1.ConditionTrue, &Wait{For: "the rollout", Stalled: true}, "Ready=False RolloutInProgress, Stalled=True RolloutInProgress"},
		"waiting for pods":              {metav1.ConditionFalse, &Wait{For: "pods"}, "Ready=False Down, Reconciling=True Down"},
		"a user has to act":             {metav1.ConditionFalse, &Wait{For: "a valid spec", Stalled: true}, "Ready=False Down, Stalled=True Down"},
		"the API server refuses":        {metav1.ConditionTrue, invalid, "Ready=False RequestInvalid, Stalled=True RequestInvalid"},
		"an error without a condition":  {metav1.ConditionTrue, broken, "Ready=False ReconcileError"},
	} {
		t.Run(name, func(t *testing.T) {
			err, status := tc.err, tc.available
			logic := failing(&err)
			logic.Summary = func(w *widget) {
				reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Up", metav1.ConditionFalse: "Down"}[status]
				set(w, available, status, reason)
			}
			b := newBench(t, logic, newWidget())
			for range 3 {
				_, _ = b.reconcile() // other tests check the result
			}
			if got := states(b.get()); got != tc.want || len(b.writes) != 1 {
				t.Errorf("%s, want %s; %d writes", got, tc.want, len(b.writes))
			}
			for _, e := range b.events() {
				if strings.Contains(e, "Ready is") || strings.Contains(e, "Reconciling is") || strings.Contains(e, "Stalled is") && !strings.Contains(e, "RequestInvalid") &&
					!strings.Contains(e, "RolloutInProgress") {
					t.Errorf("event %q repeats another", e)
				}
			}
			err, status = nil, metav1.ConditionTrue
			b.must()
			if got := states(b.get()); got != "Ready=True Up" {
				t.Errorf("afterwards %s", got)
			}
		})
	}
}

// A ready condition of an older generation does not make the object ready.
func TestReadyConditionOfOlderGenerationIsNotReady(t *testing.T) {
	judged := true
	logic := Logic[*widget]{Phases: []Phase[*widget]{phase("judging", func(w *widget) error {
		if judged {
			set(w, available, metav1.ConditionTrue, "Up")
		}
		return nil
	})}}
	b := newBench(t, logic, newWidget())
	b.must()
	judged = false
	b.change(func(w *widget) { w.Generation = 2 })
	b.must()
	if got := states(b.get()); got != "Ready=False RolloutInProgress, Reconciling=True RolloutInProgress" {
		t.Error(got)
	}
	judged = true
	b.must()
	if got := states(b.get()); got != "Ready=True Up" {
		t.Error(got)
	}
}

// An object that is paused before its first reconcile is not ready; one that is paused later keeps its conditions.
func TestPausedAndReady(t *testing.T) {
	pause := func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }
	b := newBench(t, sized(), newWidget(pause))
	b.must()
	if got := states(b.get()); got != "Ready=Unknown Paused" || b.must() != 0 {
		t.Error(got)
	}
	b.change(func(w *widget) { w.Annotations = nil })
	b.must()
	b.change(pause)
	b.must()
	if got := states(b.get()); got != "Ready=True Up" {
		t.Error(got)
	}
}

// A kind that sets Ready itself only gets Stalled from its waits, and an event for Ready.
func TestKindsThatSetReady(t *testing.T) {
	var err error = &Wait{For: "a complete spec", Stalled: true}
	logic := failing(&err)
	logic.ReadyCondition = conditions.Ready
	logic.Summary = func(w *widget) { set(w, conditions.Ready, metav1.ConditionFalse, "ConfigPending") }
	b := newBench(t, logic, newWidget())
	b.must()
	if got := states(b.get()); got != "Ready=False ConfigPending, Stalled=True ConfigPending" {
		t.Error(got)
	}
	if got := b.events(); len(got) != 1 || !strings.Contains(got[0], "Ready is False") {
		t.Errorf("events %q", got)
	}
	if types := b.get().Status.Conditions; slices.ContainsFunc(types, func(c metav1.Condition) bool { return c.Type == conditions.Reconciling }) {
		t.Errorf("conditions %+v", types)
	}
}
