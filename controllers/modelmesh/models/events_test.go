package models

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
)

func TestTransitions(t *testing.T) {
	failed := func(message, id string) v1alpha1.PredictorStatus {
		return v1alpha1.PredictorStatus{ActiveModelState: "FailedToLoad", TransitionStatus: "UpToDate", LastFailureInfo: failure("ModelLoadFailed", message, id, "a", nil)}
	}
	invalid := func(message string) v1alpha1.PredictorStatus {
		return v1alpha1.PredictorStatus{ActiveModelState: "Loaded", TransitionStatus: "InvalidSpec", LastFailureInfo: failure("InvalidPredictorSpec", message, "m", "", nil)}
	}
	of := func(active v1alpha1.ModelState, transition v1alpha1.TransitionStatus) v1alpha1.PredictorStatus {
		return v1alpha1.PredictorStatus{ActiveModelState: active, TransitionStatus: transition}
	}
	for name, tc := range map[string]struct {
		before, after v1alpha1.PredictorStatus
		want          []string
	}{
		"nothing":                   {of("Loaded", "UpToDate"), of("Loaded", "UpToDate"), nil},
		"loading is no news":        {of("Pending", "UpToDate"), of("Loading", "UpToDate"), nil},
		"loaded":                    {of("Loading", "UpToDate"), of("Loaded", "UpToDate"), []string{"ModelLoaded"}},
		"failed":                    {of("Loading", "UpToDate"), failed("x", "m"), []string{"ModelLoadFailed"}},
		"failed still":              {failed("x", "m"), failed("y", "m"), nil},
		"another failed":            {failed("x", "m"), failed("x", "n"), []string{"ModelLoadFailed"}},
		"replacing":                 {of("Loaded", "UpToDate"), of("Loaded", "InProgress"), nil},
		"replaced":                  {of("Loaded", "InProgress"), of("Loaded", "UpToDate"), []string{"ModelReplaced"}},
		"replaced after a failure":  {of("Loaded", "BlockedByFailedLoad"), of("Loaded", "UpToDate"), []string{"ModelReplaced"}},
		"replaced and loaded":       {of("Standby", "InProgress"), of("Loaded", "UpToDate"), []string{"ModelLoaded"}},
		"invalid":                   {of("Loaded", "UpToDate"), invalid("x"), []string{"InvalidPredictorSpec"}},
		"invalid still":             {invalid("x"), invalid("x"), nil},
		"invalid for another cause": {invalid("x"), invalid("y"), []string{"InvalidPredictorSpec"}},
		"valid again":               {invalid("x"), of("Loaded", "UpToDate"), nil},
	} {
		var got []string
		for _, n := range transitions(tc.before, tc.after) {
			got = append(got, n.reason)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: events %q, want %q", name, got, tc.want)
		}
	}
}

// One failure after the other: the status before must not be the one that the answer to the write was read into.
func TestEachFailureIsReported(t *testing.T) {
	for _, key := range []types.NamespacedName{aPredictor, aService} {
		w := newWorld(t, predictor(), service(t, aModel))
		w.mesh.fault = meshclient.ErrNoAddress
		w.reconcile(key)
		w.oneEvent("Normal RuntimeUnhealthy") // no pod has come yet, and nothing is wrong
		w.mesh.fault = nil
		for _, tc := range []struct{ mistake, want string }{
			{"broken", "ModelLoadFailed"},
			{homeless + "mt:a: [_no_runtime]", "NoSupportingRuntime"},
			{homeless + "rt:a: [_no_runtime]", "RuntimeNotRecognized"},
			{"broken", "ModelLoadFailed"},
		} {
			w.mesh.answer = says("m", with(concrete(loadFailed, tc.mistake), copyAt("a", loadFailed, at(0))))
			w.memory.mark(key)
			w.reconcile(key)
			w.oneEvent("Warning " + tc.want)
			w.rests(key)
		}
	}
}

func TestPauses(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 100: time.Minute, 1 << 40: time.Minute,
	} {
		for range 20 {
			if got := pause(attempt, pauseMin, pauseMax); got < want || got > time.Duration(float64(want)*(1+jitter)) {
				t.Errorf("attempt %d: %s, want %s and a little more", attempt, got, want)
			}
		}
	}
}

// An entry is due when it is about something else, when something happened, or when its time has come; and not before.
func TestDue(t *testing.T) {
	known := entry{asked: "m", outcome: answered}
	for name, tc := range map[string]struct {
		change func(*entry)
		asked  string
		want   bool
	}{
		"known":                  {func(*entry) {}, "m", false},
		"another model":          {func(*entry) {}, "n", true},
		"news":                   {func(e *entry) { e.stale = true }, "m", true},
		"never asked":            {func(e *entry) { e.outcome = unasked }, "m", true},
		"asked in vain":          {func(e *entry) { e.outcome, e.again = unasked, now.Add(1) }, "m", false},
		"asked in vain long ago": {func(e *entry) { e.outcome, e.again = unasked, now }, "m", true},
		"later":                  {func(e *entry) { e.again = now.Add(1) }, "m", false},
		"now":                    {func(e *entry) { e.again = now }, "m", true},
	} {
		e := known
		tc.change(&e)
		if got := e.due(tc.asked, now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	e := entry{asked: "m", outcome: answered, attempts: 3}
	if e.begin("m"); e.attempts != 3 {
		t.Error("it is about the same")
	}
	if e.begin("n"); e.attempts != 0 || e.order != orderNew || e.outcome != unasked {
		t.Errorf("%+v", e)
	}
	e.askAgain(now, pauseMax)
	e.askAgain(now, pauseMax)
	if e.attempts != 2 || e.again.Before(now.Add(2*pauseMin)) {
		t.Errorf("%+v", e)
	}
	if e.rest(); e.attempts != 0 || !e.again.IsZero() {
		t.Errorf("%+v", e)
	}
}
