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

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

func TestEventsOnTransitionsOnly(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget())
	f.mustReconcile()
	if got, want := f.events(), []string{
		"Normal Measured Measured is True: because Measured", "Normal Up Available is True: because Up",
	}; !slices.Equal(got, want) {
		t.Errorf("first reconcile: got events %q, want %q", got, want)
	}
	f.mustReconcile()
	f.change(func(w *widget) { w.Generation = 2 }) // changes only observed generations
	f.mustReconcile()
	if got := f.events(); len(got) != 0 {
		t.Errorf("no status or reason changed: got events %q, want none", got)
	}
	f.change(func(w *widget) { w.Spec.Size = -1 })
	f.mustReconcile()
	if got, want := f.events(), []string{
		"Warning SizeInvalid Measured is False: because SizeInvalid", "Warning Down Available is False: because Down",
	}; !slices.Equal(got, want) {
		t.Errorf("conditions became False: got events %q, want %q", got, want)
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
		"no conditions":     {nil, nil, 0},
		"new and unknown":   {nil, []metav1.Condition{c("A", metav1.ConditionUnknown, "Pending", "")}, 0},
		"new":               {nil, []metav1.Condition{c("A", metav1.ConditionFalse, "Starting", "")}, 1},
		"changed message":   {[]metav1.Condition{c("A", "False", "X", "1")}, []metav1.Condition{c("A", "False", "X", "2")}, 0},
		"changed reason":    {[]metav1.Condition{c("A", "False", "X", "")}, []metav1.Condition{c("A", "False", "Y", "")}, 1},
		"changed status":    {[]metav1.Condition{c("A", "False", "X", "")}, []metav1.Condition{c("A", "Unknown", "X", "")}, 1},
		"removed condition": {[]metav1.Condition{c("A", "False", "X", "")}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := events.NewFakeRecorder(10)
			recordTransitions(r, newWidget(), available, tc.before, tc.after)
			if n := len(r.Events); n != tc.want {
				t.Errorf("got %d events, want %d", n, tc.want)
			}
		})
	}
	recordTransitions(nil, newWidget(), available, nil, []metav1.Condition{c("A", "True", "X", "")}) // no recorder

	r := events.NewFakeRecorder(1)
	recordTransitions(redact.Recorder(r), newWidget(), available, nil, []metav1.Condition{c("A", "True", "X", strings.Repeat("100% ", 500))})
	if note := <-r.Events; len(note) > redact.MaxNote+20 || strings.Contains(note, "MISSING") {
		t.Errorf("the note is longer than the API allows, or was formatted twice: %d bytes, %q", len(note), note[:40])
	}
}

// anyError draws a tree of errors. It returns the Retry of each Wait and the number of failures in the tree.
func anyError(t *rapid.T, depth int) (waits []time.Duration, failures int, err error) {
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0 || depth == 0:
		retry := time.Duration(rapid.IntRange(0, 5).Draw(t, "retry")) * time.Second
		return []time.Duration{retry}, 0, &Wait{For: "pods", Retry: retry}
	case kind == 1:
		return nil, 1, errors.New("failed")
	case kind == 2:
		waits, failures, inner := anyError(t, depth-1)
		return waits, failures, fmt.Errorf("applying: %w", inner)
	default:
		var errs []error
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			w, f, e := anyError(t, depth-1)
			errs, waits, failures = append(errs, e), append(waits, w...), failures+f
		}
		return waits, failures, errors.Join(errs...)
	}
}

// A tree of errors is a wait only if it has no failure, and the shortest positive Retry is used.
func TestAsWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waits, failures, err := anyError(t, 3)
		wait, ok := AsWait(err)
		if ok != (failures == 0) {
			t.Fatalf("%v has %d failures: AsWait returns %t", err, failures, ok)
		}
		if !ok {
			return
		}
		retries := slices.DeleteFunc(waits, func(d time.Duration) bool { return d <= 0 })
		var want time.Duration
		if len(retries) > 0 {
			want = slices.Min(retries)
		}
		if max(wait.Retry, 0) != want {
			t.Fatalf("got Retry %s, want %s", wait.Retry, want)
		}
	})
	var nilWait *Wait
	if _, ok := AsWait(nil); ok {
		t.Error("AsWait finds a Wait in a nil error")
	}
	if _, ok := AsWait(nilWait); ok {
		t.Error("AsWait finds a Wait in a nil *Wait")
	}
	if got := (&Wait{For: "pods"}).Error(); got != "waiting for pods" {
		t.Errorf("got error %q", got)
	}
}

// The gauge counts the existing objects after any sequence of track and remove.
func TestTrackerCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		component := rapid.StringMatching(`c[a-z0-9]{12}`).Draw(t, "component")
		tracker := newObjectTracker(component, "widget")
		model := map[types.NamespacedName]metav1.ConditionStatus{}
		uids := map[types.NamespacedName]types.UID{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			name := types.NamespacedName{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			if rapid.Bool().Draw(t, "remove") {
				uid, known := tracker.remove(name)
				if want, exists := uids[name]; known != exists || uid != want {
					t.Fatalf("remove: got %q, %t, want %q, %t", uid, known, want, exists)
				}
				delete(model, name)
				delete(uids, name)
				continue
			}
			status := rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "status")
			uid := types.UID(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid"))
			previousUID, replaced := tracker.track(name, uid, []metav1.Condition{{Type: available, Status: status}})
			if want, exists := uids[name]; replaced != (exists && want != uid) || (replaced && previousUID != want) {
				t.Fatalf("track: got %q, %t, want %q", previousUID, replaced, want)
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
				t.Fatalf("status %s: got gauge %v, want %d", status, got, want)
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
		t.Errorf("same status: got patch %s, want none", patch)
	}
	after := clone(before)
	after.Status.URL = "https://x"
	patch := statusPatch(before, after)
	if string(patch) != `{"metadata":{"resourceVersion":"7"},"status":{"url":"https://x"}}` {
		t.Errorf("got patch %s", patch)
	}
	if patch = statusPatch(after, before); !strings.Contains(string(patch), `"status":null`) && !strings.Contains(string(patch), `"url":null`) {
		t.Errorf("got patch %s, want the cleared field removed", patch)
	}
}
