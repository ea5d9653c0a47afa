package reconciler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"
)

func TestEventsOnTransitionsOnly(t *testing.T) {
	b := newBench(t, sized(), newWidget())
	b.must()
	if got, want := b.events(), []string{
		"Normal Measured Measured is True: because Measured", "Normal Up Available is True: because Up",
	}; !slices.Equal(got, want) {
		t.Errorf("first sight: %q", got)
	}
	b.must()
	b.change(func(w *widget) { w.Generation = 2 }) // observedGeneration changes, no condition does
	b.must()
	if got := b.events(); len(got) != 0 {
		t.Errorf("nothing happened: %q", got)
	}
	b.change(func(w *widget) { w.Spec.Size = -1 })
	b.must()
	if got, want := b.events(), []string{
		"Warning SizeInvalid Measured is False: because SizeInvalid", "Warning Down Available is False: because Down",
	}; !slices.Equal(got, want) {
		t.Errorf("went bad: %q", got)
	}
}

func TestRecordTransitions(t *testing.T) {
	c := func(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          int
	}{
		"no conditions":       {nil, nil, 0},
		"unknown is no news":  {nil, []metav1.Condition{c("A", metav1.ConditionUnknown, "Pending", "")}, 0},
		"new":                 {nil, []metav1.Condition{c("A", metav1.ConditionFalse, "Starting", "")}, 1},
		"another message":     {[]metav1.Condition{c("A", "False", "X", "1")}, []metav1.Condition{c("A", "False", "X", "2")}, 0},
		"another reason":      {[]metav1.Condition{c("A", "False", "X", "")}, []metav1.Condition{c("A", "False", "Y", "")}, 1},
		"another status":      {[]metav1.Condition{c("A", "False", "X", "")}, []metav1.Condition{c("A", "Unknown", "X", "")}, 1},
		"a condition removed": {[]metav1.Condition{c("A", "False", "X", "")}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := events.NewFakeRecorder(10)
			recordTransitions(r, newWidget(), available, tc.before, tc.after)
			if n := len(r.Events); n != tc.want {
				t.Errorf("%d events, want %d", n, tc.want)
			}
		})
	}
	recordTransitions(nil, newWidget(), available, nil, []metav1.Condition{c("A", "True", "X", "")}) // no recorder, no events

	r := events.NewFakeRecorder(1)
	recordTransitions(r, newWidget(), available, nil, []metav1.Condition{c("A", "True", "X", strings.Repeat("100% ", 500))})
	if note := <-r.Events; len(note) > maxNote+20 || strings.Contains(note, "MISSING") {
		t.Errorf("the note is not fit for the API: %d bytes, %q", len(note), note[:40])
	}
}

// anyError draws a tree of errors, and returns the waits and the number of failures in it.
func anyError(t *rapid.T, depth int) (waits []time.Duration, failures int, err error) {
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0 || depth == 0:
		retry := time.Duration(rapid.IntRange(0, 5).Draw(t, "retry")) * time.Second
		return []time.Duration{retry}, 0, &Wait{For: "it", Retry: retry}
	case kind == 1:
		return nil, 1, errors.New("broken")
	case kind == 2:
		waits, failures, inner := anyError(t, depth-1)
		return waits, failures, fmt.Errorf("doing: %w", inner)
	default:
		var errs []error
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			w, f, e := anyError(t, depth-1)
			errs, waits, failures = append(errs, e), append(waits, w...), failures+f
		}
		return waits, failures, errors.Join(errs...)
	}
}

// A tree of errors is a wait only if it has no failure, and the shortest Retry is used.
func TestAsWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waits, failures, err := anyError(t, 3)
		wait, ok := AsWait(err)
		if ok != (failures == 0) {
			t.Fatalf("%v with %d failures counts as a wait: %t", err, failures, ok)
		}
		if !ok {
			return
		}
		timers := slices.DeleteFunc(waits, func(d time.Duration) bool { return d <= 0 })
		var want time.Duration
		if len(timers) > 0 {
			want = slices.Min(timers)
		}
		if max(wait.Retry, 0) != want {
			t.Fatalf("retry %s, want %s", wait.Retry, want)
		}
	})
	var none *Wait
	if _, ok := AsWait(nil); ok {
		t.Error("AsWait finds a Wait in a nil error")
	}
	if _, ok := AsWait(none); ok {
		t.Error("AsWait finds a Wait in a nil *Wait")
	}
	if got := (&Wait{For: "rain"}).Error(); got != "waiting for rain" {
		t.Errorf("Error %q", got)
	}
}

// The gauge is the sum over the existing objects after any sequence of events.
func TestTrackerCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		component := rapid.StringMatching(`c[a-z0-9]{12}`).Draw(t, "component")
		tracker := newObjectTracker(component, "widget")
		model := map[types.NamespacedName]metav1.ConditionStatus{}
		uids := map[types.NamespacedName]types.UID{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			name := types.NamespacedName{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			if rapid.Bool().Draw(t, "forget") {
				uid, known := tracker.remove(name)
				if want, had := uids[name]; known != had || uid != want {
					t.Fatalf("forgot %q %t, want %q %t", uid, known, want, had)
				}
				delete(model, name)
				delete(uids, name)
				continue
			}
			status := rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "status")
			uid := types.UID(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid"))
			gone, replaced := tracker.track(name, uid, []metav1.Condition{{Type: available, Status: status}})
			if want, had := uids[name]; replaced != (had && want != uid) || (replaced && gone != want) {
				t.Fatalf("replaced %t %q, want %q", replaced, gone, want)
			}
			model[name], uids[name] = status, uid
		}
		for _, status := range []metav1.ConditionStatus{"True", "False", "Unknown"} {
			want := 0
			for _, s := range model {
				if s == status {
					want++
				}
			}
			if got := gaugeValue(t, conditionsGauge.WithLabelValues(component, "widget", available, string(status))); int(got) != want {
				t.Fatalf("%s counts %v, want %d", status, got, want)
			}
		}
		conditionsGauge.DeletePartialMatch(map[string]string{"component": component})
	})
}

func TestStatusPatch(t *testing.T) {
	before := newWidget(func(w *widget) { w.ResourceVersion = "7" })
	same := clone(before)
	same.Spec.Size = 9
	if patch := statusPatch(before, same); patch != nil {
		t.Errorf("patch %s; the status is the same", patch)
	}
	after := clone(before)
	after.Status.URL = "https://x"
	patch := statusPatch(before, after)
	if string(patch) != `{"metadata":{"resourceVersion":"7"},"status":{"url":"https://x"}}` {
		t.Errorf("patch %s", patch)
	}
	// The patch removes a cleared field.
	if patch = statusPatch(after, before); !strings.Contains(string(patch), `"status":null`) && !strings.Contains(string(patch), `"url":null`) {
		t.Errorf("patch %s", patch)
	}
}
