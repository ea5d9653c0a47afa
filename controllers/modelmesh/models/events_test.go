package models

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
)

func TestEventsForStatusTransitions(t *testing.T) {
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
		"no transition":             {of("Loaded", "UpToDate"), of("Loaded", "UpToDate"), nil},
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
		for _, n := range transitionEvents(tc.before, tc.after) {
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
		w := newTestEnv(t, predictor(), service(t, aModel))
		w.mesh.fault = meshclient.ErrNoAddress
		w.reconcile(key)
		w.oneEvent("Normal RuntimeUnhealthy") // no pod has come yet, and nothing is wrong
		w.mesh.fault = nil
		for _, tc := range []struct{ mistake, want string }{
			{"broken", "ModelLoadFailed"},
			{noInstancePrefix + "mt:a: [_no_runtime]", "NoSupportingRuntime"},
			{noInstancePrefix + "rt:a: [_no_runtime]", "RuntimeNotRecognized"},
			{"broken", "ModelLoadFailed"},
		} {
			w.mesh.response = statusOf("m", with(concrete(loadFailed, tc.mistake), copyAt("a", loadFailed, at(0))))
			w.states.markDirty(key)
			w.reconcile(key)
			w.oneEvent("Warning " + tc.want)
			w.expectIdle(key)
		}
	}
}

func TestBackoffGrowsToOneMinute(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 100: time.Minute, 1 << 40: time.Minute,
	} {
		for range 20 {
			if got := backoff(attempt, minBackoff, maxBackoff); got < want || got > time.Duration(float64(want)*(1+jitter)) {
				t.Errorf("attempt %d: %s, want %s and a little more", attempt, got, want)
			}
		}
	}
}

// An entry is due when it is about something else, when something happened, or when its time has come; and not before.
func TestEntryIsDueAfterChangeOrDelay(t *testing.T) {
	known := modelState{requestKey: "m", result: statusReceived}
	for name, tc := range map[string]struct {
		change    func(*modelState)
		requested string
		want      bool
	}{
		"unchanged":                  {func(*modelState) {}, "m", false},
		"another model":              {func(*modelState) {}, "n", true},
		"news":                       {func(e *modelState) { e.dirty = true }, "m", true},
		"never called":               {func(e *modelState) { e.result = notCalled }, "m", true},
		"failed call, in backoff":    {func(e *modelState) { e.result, e.nextCall = notCalled, now.Add(1) }, "m", false},
		"failed call, after backoff": {func(e *modelState) { e.result, e.nextCall = notCalled, now }, "m", true},
		"later":                      {func(e *modelState) { e.nextCall = now.Add(1) }, "m", false},
		"now":                        {func(e *modelState) { e.nextCall = now }, "m", true},
	} {
		e := known
		tc.change(&e)
		if got := e.needsCall(tc.requested, now); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
	e := modelState{requestKey: "m", result: statusReceived, attempts: 3}
	if e.reset("m"); e.attempts != 3 {
		t.Error("reset cleared the attempts although the request is unchanged")
	}
	if e.reset("n"); e.attempts != 0 || e.loadReason != loadReasonSpecChanged || e.result != notCalled {
		t.Errorf("got %+v after reset for a new request, want no attempts and a changed spec", e)
	}
	e.scheduleCall(now, maxBackoff)
	e.scheduleCall(now, maxBackoff)
	if e.attempts != 2 || e.nextCall.Before(now.Add(2*minBackoff)) {
		t.Errorf("got %+v after two calls, want twice the minimal backoff", e)
	}
	if e.cancelCall(); e.attempts != 0 || !e.nextCall.IsZero() {
		t.Errorf("got %+v after cancelCall, want no attempts and no scheduled call", e)
	}
}
