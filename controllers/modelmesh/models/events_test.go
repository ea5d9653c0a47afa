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
		return v1alpha1.PredictorStatus{ActiveModelState: "FailedToLoad", TransitionStatus: "UpToDate", LastFailureInfo: newFailure("ModelLoadFailed", message, id, "a", nil)}
	}
	invalid := func(message string) v1alpha1.PredictorStatus {
		return v1alpha1.PredictorStatus{ActiveModelState: "Loaded", TransitionStatus: "InvalidSpec", LastFailureInfo: newFailure("InvalidPredictorSpec", message, "m", "", nil)}
	}
	withState := func(active v1alpha1.ModelState, transition v1alpha1.TransitionStatus) v1alpha1.PredictorStatus {
		return v1alpha1.PredictorStatus{ActiveModelState: active, TransitionStatus: transition}
	}
	for name, tc := range map[string]struct {
		original, updated v1alpha1.PredictorStatus
		want              []string
	}{
		"no change":                {withState("Loaded", "UpToDate"), withState("Loaded", "UpToDate"), nil},
		"loading":                  {withState("Pending", "UpToDate"), withState("Loading", "UpToDate"), nil},
		"loaded":                   {withState("Loading", "UpToDate"), withState("Loaded", "UpToDate"), []string{"ModelLoaded"}},
		"failed":                   {withState("Loading", "UpToDate"), failed("x", "m"), []string{"ModelLoadFailed"}},
		"same failure":             {failed("x", "m"), failed("y", "m"), nil},
		"failure of another model": {failed("x", "m"), failed("x", "n"), []string{"ModelLoadFailed"}},
		"replacing":                {withState("Loaded", "UpToDate"), withState("Loaded", "InProgress"), nil},
		"replaced":                 {withState("Loaded", "InProgress"), withState("Loaded", "UpToDate"), []string{"ModelReplaced"}},
		"replaced after failure":   {withState("Loaded", "BlockedByFailedLoad"), withState("Loaded", "UpToDate"), []string{"ModelReplaced"}},
		"replaced and loaded":      {withState("Standby", "InProgress"), withState("Loaded", "UpToDate"), []string{"ModelLoaded"}},
		"invalid":                  {withState("Loaded", "UpToDate"), invalid("x"), []string{"InvalidPredictorSpec"}},
		"same invalid spec":        {invalid("x"), invalid("x"), nil},
		"another invalid spec":     {invalid("x"), invalid("y"), []string{"InvalidPredictorSpec"}},
		"valid again":              {invalid("x"), withState("Loaded", "UpToDate"), nil},
	} {
		var got []string
		for _, e := range transitionEvents(tc.original, tc.updated) {
			got = append(got, e.reason)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: events %q, want %q", name, got, tc.want)
		}
	}
}

// Each failure is compared with the status before the write, not with the object that the response was decoded into.
func TestEachFailureIsReported(t *testing.T) {
	for _, key := range []types.NamespacedName{predictorKey, inferenceServiceKey} {
		env := newTestEnv(t, newPredictor(), newInferenceService(t, sklearnModel))
		env.mesh.err = meshclient.ErrNoAddress
		env.reconcile(key)
		env.expectEvent("Normal RuntimeUnhealthy") // the first pod is starting
		env.mesh.err = nil
		for _, tc := range []struct{ message, want string }{
			{"broken", "ModelLoadFailed"},
			{noInstancePrefix + "mt:a: [_no_runtime]", "NoSupportingRuntime"},
			{noInstancePrefix + "rt:a: [_no_runtime]", "RuntimeNotRecognized"},
			{"broken", "ModelLoadFailed"},
		} {
			env.mesh.response = responseFor("m", withCopies(modelStatus(loadFailed, tc.message), newCopy("a", loadFailed, unixMilliAfter(0))))
			env.states.markDirty(key)
			env.reconcile(key)
			env.expectEvent("Warning " + tc.want)
			env.expectSteadyState(key)
		}
	}
}

func TestBackoffGrowsToOneMinute(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 100: time.Minute, 1 << 40: time.Minute,
	} {
		for range 20 {
			if got := backoff(attempt, minBackoff, maxBackoff); got < want || got > time.Duration(float64(want)*(1+jitter)) {
				t.Errorf("attempt %d: delay %s, want %s plus jitter", attempt, got, want)
			}
		}
	}
}

// needsCall returns true for another request, a dirty state, a model for which the mesh was never called, or a due call.
func TestNeedsCall(t *testing.T) {
	clean := modelState{requestKey: "m", result: statusReceived}
	for name, tc := range map[string]struct {
		change     func(*modelState)
		requestKey string
		want       bool
	}{
		"unchanged":                  {func(*modelState) {}, "m", false},
		"another request":            {func(*modelState) {}, "n", true},
		"dirty":                      {func(e *modelState) { e.dirty = true }, "m", true},
		"never called":               {func(e *modelState) { e.result = notCalled }, "m", true},
		"failed call, in backoff":    {func(e *modelState) { e.result, e.nextCall = notCalled, now.Add(1) }, "m", false},
		"failed call, after backoff": {func(e *modelState) { e.result, e.nextCall = notCalled, now }, "m", true},
		"scheduled call":             {func(e *modelState) { e.nextCall = now.Add(1) }, "m", false},
		"due call":                   {func(e *modelState) { e.nextCall = now }, "m", true},
	} {
		e := clean
		tc.change(&e)
		if got := e.needsCall(tc.requestKey, now); got != tc.want {
			t.Errorf("%s: needsCall returned %t, want %t", name, got, tc.want)
		}
	}
	e := modelState{requestKey: "m", result: statusReceived, attempts: 3}
	if e.reset("m"); e.attempts != 3 {
		t.Error("reset cleared the attempts of an unchanged request")
	}
	if e.reset("n"); e.attempts != 0 || e.loadReason != loadReasonSpecChanged || e.result != notCalled {
		t.Errorf("state %+v after reset for a new request, want no attempts and loadReasonSpecChanged", e)
	}
	e.scheduleCall(now, maxBackoff)
	e.scheduleCall(now, maxBackoff)
	if e.attempts != 2 || e.nextCall.Before(now.Add(2*minBackoff)) {
		t.Errorf("state %+v after two attempts, want twice the minimum backoff", e)
	}
	if e.cancelCall(); e.attempts != 0 || !e.nextCall.IsZero() {
		t.Errorf("state %+v after cancelCall, want no attempts and no scheduled call", e)
	}
}
