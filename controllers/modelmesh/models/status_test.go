package models

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

var now = time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)

// unixMilliAfter returns a time in the format of the mesh, metaTimeAfter in the format of the API.
func unixMilliAfter(d time.Duration) uint64 { return uint64(now.Add(d).UnixMilli()) }
func metaTimeAfter(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: now.Add(d).Truncate(time.Second)}
}

// modelStatus returns the status of a concrete model. A status loadFailed has a failed copy, unless its error is that no instance can load
// the model.
func modelStatus(state meshpb.ModelStatusInfo_ModelStatus, errors ...string) *meshpb.ModelStatusInfo {
	m := &meshpb.ModelStatusInfo{Status: state, Errors: errors}
	if state == loadFailed && (len(errors) == 0 || !strings.HasPrefix(errors[0], noInstancePrefix)) {
		m.ModelCopyInfos = append(m.ModelCopyInfos, newCopy("a", loadFailed, 0))
	}
	return m
}

func withCopies(m *meshpb.ModelStatusInfo, copies ...*meshpb.ModelStatusInfo_ModelCopyInfo) *meshpb.ModelStatusInfo {
	m.ModelCopyInfos = copies
	return m
}

func newCopy(location string, state meshpb.ModelStatusInfo_ModelStatus, time uint64) *meshpb.ModelStatusInfo_ModelCopyInfo {
	return &meshpb.ModelStatusInfo_ModelCopyInfo{Location: location, CopyStatus: state, Time: time}
}

const (
	notFound         = meshpb.ModelStatusInfo_NOT_FOUND
	notLoaded        = meshpb.ModelStatusInfo_NOT_LOADED
	loading          = meshpb.ModelStatusInfo_LOADING
	loaded           = meshpb.ModelStatusInfo_LOADED
	loadFailed       = meshpb.ModelStatusInfo_LOADING_FAILED
	unknown          = meshpb.ModelStatusInfo_UNKNOWN
	defined          = meshpb.VModelStatusInfo_DEFINED
	transitioning    = meshpb.VModelStatusInfo_TRANSITIONING
	transitionFailed = meshpb.VModelStatusInfo_TRANSITION_FAILED
)

// singleModelResponse returns the response for a vmodel with one model.
func singleModelResponse(m *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	return &meshpb.VModelStatusInfo{Status: defined, ActiveModelId: "m", TargetModelId: "m", ActiveModelStatus: m, TargetModelStatus: m}
}

// transitionResponse returns the response for a vmodel with different active and target models.
func transitionResponse(s meshpb.VModelStatusInfo_VModelStatus, active, target *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	return &meshpb.VModelStatusInfo{Status: s, ActiveModelId: "old", TargetModelId: "new", ActiveModelStatus: active, TargetModelStatus: target}
}

// [modelmesh-66] [modelmesh-67] [modelmesh-68] [modelmesh-69] [modelmesh-70]
func TestParseConcreteStatus(t *testing.T) {
	const noInstance = "There are no running instances that meet the label requirements of type "
	for name, tc := range map[string]struct {
		in   *meshpb.ModelStatusInfo
		want concreteStatus
	}{
		"no status":             {nil, concreteStatus{v1alpha1.Pending, "", "", true}},
		"not found":             {modelStatus(notFound), concreteStatus{}},
		"unknown":               {modelStatus(unknown, "x"), concreteStatus{}},
		"not loaded":            {modelStatus(notLoaded), concreteStatus{v1alpha1.Standby, "", "", true}},
		"loading":               {modelStatus(loading), concreteStatus{v1alpha1.Loading, "", "", true}},
		"loading after failure": {modelStatus(loading, "first", "second"), concreteStatus{v1alpha1.Loading, v1alpha1.ModelLoadFailed, "first", true}},
		"loaded":                {modelStatus(loaded), concreteStatus{v1alpha1.Loaded, "", "", true}},
		"two errors":            {modelStatus(loadFailed, "first", "second"), concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "first", true}},
		"no error":              {modelStatus(loadFailed), concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "", true}},
		"no instance for a type": {modelStatus(loadFailed, noInstance+"mt:SomeType: [mt:SomeType]"),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"no instance available": {&meshpb.ModelStatusInfo{Status: loadFailed, Errors: []string{"Nowhere available to load"}},
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"only a lost copy": {withCopies(modelStatus(loadFailed, "Nowhere available to load"), newCopy("a", unknown, 1)),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"failure not stored yet": {modelStatus(loadFailed, "io.grpc.StatusRuntimeException: INTERNAL: x"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "INTERNAL: x", true}},
		"no instance for a runtime": {modelStatus(loadFailed, noInstance+"rt:SomeRuntime: [rt:SomeRuntime]"),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"unknown runtime": {modelStatus(loadFailed, noInstance+"rt:SomeRuntime: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.RuntimeNotRecognized,
				"Specified runtime name not recognized: create or enable the runtime SomeRuntime, or name another one", true}},
		"no runtime for a type": {modelStatus(loadFailed, noInstance+"mt:SomeType: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", true}},
		"prefix inside the message": {modelStatus(loadFailed, "x: "+noInstance+"mt:a: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "x: " + noInstance + "mt:a: [_no_runtime]", true}},
		"prefix in the second error": {modelStatus(loadFailed, "first", noInstance+"mt:a: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "first", true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseConcreteStatus(tc.in); got != tc.want {
				t.Errorf("status %+v, want %+v", got, tc.want)
			}
		})
	}
}

func newFailure(reason v1alpha1.FailureReason, message, id, location string, time *metav1.Time) *v1alpha1.FailureInfo {
	return &v1alpha1.FailureInfo{Reason: reason, Message: message, ModelID: id, Location: location, Time: time}
}

var noPodsFailure = newFailure(v1alpha1.RuntimeUnhealthy, messageNoPods, "m", "", nil)

func TestWithVModelStatus(t *testing.T) {
	pending := v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Pending}
	loadedStatus := v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Loaded, TotalCopies: 1, Available: true}
	const noRuntime = noInstancePrefix + "mt:a: [_no_runtime]"
	for name, tc := range map[string]struct {
		original v1alpha1.PredictorStatus
		info     *meshpb.VModelStatusInfo
		want     v1alpha1.PredictorStatus
	}{
		"loading": {pending, singleModelResponse(withCopies(modelStatus(loading), newCopy("a", loading, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", TotalCopies: 1, Available: true}},
		"loaded twice": {pending, singleModelResponse(withCopies(modelStatus(loaded), newCopy("a", loaded, 1), newCopy("b", loaded, 2))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", TotalCopies: 2, Available: true}},
		"loaded, and failed on another pod": {pending, singleModelResponse(withCopies(modelStatus(loaded, "x"), newCopy("a", loaded, 1), newCopy("b", loadFailed, 2))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", TotalCopies: 2, FailedCopies: 1, Available: true}},
		"failed": {pending, singleModelResponse(withCopies(modelStatus(loadFailed, "broken"), newCopy("a", loading, 1), newCopy("b", loadFailed, unixMilliAfter(-time.Minute)), newCopy("c", loadFailed, unixMilliAfter(0)))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", TotalCopies: 3, FailedCopies: 2,
				LastFailureInfo: newFailure("ModelLoadFailed", "broken", "m", "b", metaTimeAfter(-time.Minute))}},
		"failed without a time": {pending, singleModelResponse(modelStatus(loadFailed, "broken")),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: newFailure("ModelLoadFailed", "broken", "m", "a", metaTimeAfter(0)), FailedCopies: 1, TotalCopies: 1}},
		"no runtime": {pending, singleModelResponse(withCopies(modelStatus(loadFailed, noRuntime), newCopy("a", loadFailed, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: newFailure("NoSupportingRuntime", messageUnsupported, "m", "", metaTimeAfter(0))}},
		"only the active status": {pending, &meshpb.VModelStatusInfo{Status: defined, ActiveModelId: "m", TargetModelId: "m", ActiveModelStatus: modelStatus(loadFailed, "broken")},
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: newFailure("ModelLoadFailed", "broken", "m", "a", metaTimeAfter(0)), FailedCopies: 1, TotalCopies: 1}},
		"waiting for a pod, loading": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Pending", LastFailureInfo: noPodsFailure}, singleModelResponse(modelStatus(loading)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: noPodsFailure}},
		"waiting for a pod, loaded": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: noPodsFailure}, singleModelResponse(modelStatus(loaded)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
		"waiting for a pod, evicted": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: noPodsFailure}, singleModelResponse(modelStatus(notLoaded)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Standby", Available: true}},
		"failed before, loading": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: newFailure("ModelLoadFailed", "x", "m", "", nil)}, singleModelResponse(modelStatus(loading)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", Available: true}},
		"replacing": {loadedStatus, transitionResponse(transitioning, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)), withCopies(modelStatus(loading), newCopy("b", loading, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading", TotalCopies: 2, Available: true}},
		"replacing failed": {loadedStatus, transitionResponse(transitionFailed, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)), withCopies(modelStatus(loadFailed, "broken"), newCopy("b", loadFailed, unixMilliAfter(0)))),
			v1alpha1.PredictorStatus{TransitionStatus: "BlockedByFailedLoad", ActiveModelState: "Loaded", TargetModelState: "FailedToLoad", TotalCopies: 2, FailedCopies: 1, Available: true,
				LastFailureInfo: newFailure("ModelLoadFailed", "broken", "new", "b", metaTimeAfter(0))}},
		"replacing waits for a pod": {loadedStatus, transitionResponse(transitionFailed, modelStatus(loaded), modelStatus(loadFailed, noInstancePrefix+"mt:a: [mt:a]")),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading",
				LastFailureInfo: newFailure("RuntimeUnhealthy", messageNoSupportingPod, "new", "", metaTimeAfter(0))}},
		"no status of the target": {v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading"}, transitionResponse(transitioning, modelStatus(loaded), nil),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading", Available: true}},
		"unknown": {loadedStatus, transitionResponse(meshpb.VModelStatusInfo_UNKNOWN, modelStatus(unknown), modelStatus(notFound)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
		"vmodel does not exist": {loadedStatus, &meshpb.VModelStatusInfo{ActiveModelStatus: modelStatus(notFound)},
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := withVModelStatus(tc.original, parseVModelStatus(tc.info, tc.original.LastFailureInfo), now)
			got.Available = isAvailable(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A continuing failure keeps the time and location of its first report.
func TestTimeOfFailureIsKept(t *testing.T) {
	info := singleModelResponse(modelStatus(loadFailed, noInstancePrefix+"mt:a: [_no_runtime]"))
	first := withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(info, nil), now)
	later := withVModelStatus(first, parseVModelStatus(info, first.LastFailureInfo), now.Add(time.Hour))
	if diff := cmp.Diff(first, later); diff != "" {
		t.Errorf("the same response changed the status:\n%s", diff)
	}
	info.TargetModelId, info.ActiveModelId = "n", "n"
	if another := withVModelStatus(first, parseVModelStatus(info, first.LastFailureInfo), now.Add(time.Hour)); !another.LastFailureInfo.Time.Equal(metaTimeAfter(time.Hour)) {
		t.Errorf("failure of another model: time %s, want one hour later", another.LastFailureInfo.Time)
	}

	a, b := newCopy("a", loadFailed, unixMilliAfter(0)), newCopy("b", loadFailed, unixMilliAfter(time.Minute))
	first = withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(singleModelResponse(withCopies(modelStatus(loadFailed, "x"), a, b)), nil), now)
	later = withVModelStatus(first, parseVModelStatus(singleModelResponse(withCopies(modelStatus(loadFailed, "x"), b, a)), first.LastFailureInfo), now)
	if diff := cmp.Diff(first, later); diff != "" || first.LastFailureInfo.Location != "a" {
		t.Errorf("the status depends on the order of copies:\n%s", diff)
	}
	later = withVModelStatus(first, parseVModelStatus(singleModelResponse(withCopies(modelStatus(loadFailed, "x"), b)), first.LastFailureInfo), now)
	if later.LastFailureInfo.Location != "b" {
		t.Errorf("location %s of a deleted copy, want b", later.LastFailureInfo.Location)
	}
}

// A response of any size has a small parsed status: a pod that poses as the mesh must not exhaust the memory of the operator, or make a
// status that the API server rejects.
func TestParsedStatusOfHugeResponseIsSmall(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	m := withCopies(modelStatus(loadFailed, huge), newCopy(huge, loadFailed, unixMilliAfter(0)))
	for range 200_000 {
		m.ModelCopyInfos = append(m.ModelCopyInfos, &meshpb.ModelStatusInfo_ModelCopyInfo{})
	}
	info := &meshpb.VModelStatusInfo{Status: defined, ActiveModelId: huge, TargetModelId: huge, ActiveModelStatus: m, TargetModelStatus: m}
	v := parseVModelStatus(info, nil)
	if size := len(fmt.Sprintf("%+v", v)); size > 64<<10 {
		t.Errorf("parsed status of %d bytes, want at most 64 KiB", size)
	}
	first := withVModelStatus(v1alpha1.PredictorStatus{}, v, now)
	if f := first.LastFailureInfo; len(f.ModelID) != maxNameBytes || len(f.Location) != maxNameBytes || first.TotalCopies != 200_001 {
		t.Errorf("model ID of %d bytes, location of %d, %d copies, want clipped texts and all copies", len(f.ModelID), len(f.Location), first.TotalCopies)
	}
	later := withVModelStatus(first, parseVModelStatus(info, first.LastFailureInfo), now.Add(time.Hour))
	if diff := cmp.Diff(first, later); diff != "" {
		t.Errorf("the same response changed the status:\n%s", diff)
	}
}

// The current time replaces an unset time and a time after the year 9999, which the API server rejects.
func TestTimesOutOfRangeAreReplaced(t *testing.T) {
	for ms, want := range map[uint64]*metav1.Time{
		0: metaTimeAfter(0), maxUnixMilli: metaTime(time.UnixMilli(maxUnixMilli)), maxUnixMilli + 1: metaTimeAfter(0), math.MaxInt64: metaTimeAfter(0), math.MaxUint64: metaTimeAfter(0),
	} {
		info := singleModelResponse(withCopies(modelStatus(loadFailed, "x"), newCopy("a", loadFailed, ms)))
		first := withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(info, nil), now)
		f := first.LastFailureInfo
		if !f.Time.Equal(want) || f.Location != "a" || f.Time.UTC().Year() > 9999 {
			t.Errorf("%d ms: time %s, location %s, want time %s", ms, f.Time, f.Location, want)
		}
		if diff := cmp.Diff(first, withVModelStatus(first, parseVModelStatus(info, first.LastFailureInfo), now.Add(time.Hour))); diff != "" {
			t.Errorf("the same response changed the status:\n%s", diff)
		}
	}
}

// A model waits if its runtime exists, because the pods load the type constraints of the runtime later.
func TestWaitIfUnsupported(t *testing.T) {
	for _, label := range []string{"mt:a: [_no_runtime]", "rt:a: [_no_runtime]"} {
		a := parseVModelStatus(singleModelResponse(modelStatus(loadFailed, noInstancePrefix+label)), nil)
		a.active, a.target = a.active.waitIfUnsupported(), a.target.waitIfUnsupported()
		s := withVModelStatus(v1alpha1.PredictorStatus{}, a, now)
		if s.ActiveModelState != v1alpha1.Loading || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy || s.LastFailureInfo.Message != messageNoSupportingPod || isAvailable(s) {
			t.Errorf("%s: status %+v, want Loading without a supporting pod", label, s)
		}
	}
	if r := parseLoadFailure("broken", []*meshpb.ModelStatusInfo_ModelCopyInfo{newCopy("a", loadFailed, 1)}); r.waitIfUnsupported() != r {
		t.Errorf("failed load: waitIfUnsupported changed the status %+v", r)
	}
}

func TestIsAvailable(t *testing.T) {
	for state, want := range map[v1alpha1.ModelState]bool{
		"": false, "Pending": false, "Standby": true, "Loading": true, "Loaded": true, "FailedToLoad": false,
	} {
		s := v1alpha1.PredictorStatus{ActiveModelState: state}
		if got := isAvailable(s); got != want {
			t.Errorf("%q: isAvailable returned %t, want %t", state, got, want)
		}
		if s.LastFailureInfo = noPodsFailure; isAvailable(s) {
			t.Errorf("%q: available without a pod", state)
		}
		s.LastFailureInfo = newFailure(v1alpha1.ModelLoadFailed, "", "", "", nil)
		if got := isAvailable(s); got != want {
			t.Errorf("%q, load failed: isAvailable returned %t, want %t", state, got, want)
		}
	}
}

func TestNeedsLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		status v1alpha1.PredictorStatus
		want   bool
	}{
		"new":                    {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending}, true},
		"failed":                 {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.FailedToLoad}, true},
		"in transition":          {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loaded, TargetModelState: v1alpha1.Standby}, true},
		"waiting for a pod":      {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading, LastFailureInfo: noPodsFailure}, true},
		"loading":                {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading}, false},
		"loading, failed before": {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading, LastFailureInfo: newFailure("ModelLoadFailed", "", "", "", nil)}, false},
		"loaded":                 {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loaded}, false},
		"standby":                {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Standby, LastFailureInfo: noPodsFailure}, false},
	} {
		if got := needsLoad(tc.status); got != tc.want {
			t.Errorf("%s: needsLoad returned %t, want %t", name, got, tc.want)
		}
	}
}

func TestWithFailureAndClearInvalidSpec(t *testing.T) {
	s := withFailure(v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded"}, v1alpha1.InvalidPredictorSpec, "message", "m")
	if s.TransitionStatus != v1alpha1.InvalidSpec || s.ActiveModelState != v1alpha1.Loaded || *s.LastFailureInfo != *newFailure("InvalidPredictorSpec", "message", "m", "", nil) {
		t.Errorf("status %+v, want InvalidSpec with the loaded model unchanged", s)
	}
	s = withFailure(v1alpha1.PredictorStatus{ActiveModelState: "Pending"}, v1alpha1.RuntimeUnhealthy, messageNoPods, "m")
	if s.TransitionStatus != "" || *s.LastFailureInfo != *noPodsFailure { // as in the recordings of InferenceServices
		t.Errorf("status %+v, want RuntimeUnhealthy without a transition status", s)
	}
	for state, want := range map[v1alpha1.ModelState]v1alpha1.TransitionStatus{v1alpha1.Pending: v1alpha1.UpToDate, v1alpha1.Loaded: v1alpha1.InProgress} {
		if got := clearInvalidSpec(v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.InvalidSpec, ActiveModelState: state}); got.TransitionStatus != want {
			t.Errorf("%s: transition %s after InvalidSpec, want %s", state, got.TransitionStatus, want)
		}
		if got := clearInvalidSpec(v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.BlockedByFailedLoad, ActiveModelState: state}); got.TransitionStatus != v1alpha1.BlockedByFailedLoad {
			t.Errorf("%s: transition %s, want BlockedByFailedLoad unchanged", state, got.TransitionStatus)
		}
	}
}

// drawModelStatus draws a status that the mesh can return for a model, or nil.
func drawModelStatus(t *rapid.T, name string) *meshpb.ModelStatusInfo {
	if rapid.IntRange(0, 5).Draw(t, name+" absent") == 0 {
		return nil
	}
	m := modelStatus(meshpb.ModelStatusInfo_ModelStatus(rapid.IntRange(0, 5).Draw(t, name)))
	m.Errors = rapid.SliceOfN(rapid.SampledFrom([]string{
		"broken", "", noInstancePrefix + "mt:a: [mt:a]", noInstancePrefix + "mt:a: [_no_runtime]", noInstancePrefix + "rt:a: [_no_runtime]",
	}), 0, 2).Draw(t, name+" errors")
	for range rapid.IntRange(0, 3).Draw(t, name+" copies") {
		m.ModelCopyInfos = append(m.ModelCopyInfos, newCopy(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "location"),
			meshpb.ModelStatusInfo_ModelStatus(rapid.IntRange(0, 5).Draw(t, "copy")), uint64(rapid.IntRange(0, 5000).Draw(t, "time"))))
	}
	return m
}

// For any response of the mesh, the status is valid, and the same response does not change it again.
func TestRepeatedResponseDoesNotChangeStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"", "m", "n"})
		info := &meshpb.VModelStatusInfo{
			Status:        meshpb.VModelStatusInfo_VModelStatus(rapid.SampledFrom([]int32{0, 1, 2, 3, 5}).Draw(t, "status")),
			ActiveModelId: ids.Draw(t, "active id"), TargetModelId: ids.Draw(t, "target id"),
			ActiveModelStatus: drawModelStatus(t, "active"), TargetModelStatus: drawModelStatus(t, "target"),
		}
		original := v1alpha1.PredictorStatus{
			TransitionStatus: v1alpha1.UpToDate, ActiveModelState: rapid.SampledFrom([]v1alpha1.ModelState{"Pending", "Loaded", "FailedToLoad"}).Draw(t, "original"),
			LastFailureInfo: rapid.SampledFrom([]*v1alpha1.FailureInfo{nil, noPodsFailure, newFailure("ModelLoadFailed", "broken", "m", "a", metaTimeAfter(0))}).Draw(t, "failure"),
		}
		first := withVModelStatus(original, parseVModelStatus(info, original.LastFailureInfo), now)
		second := withVModelStatus(first, parseVModelStatus(info, first.LastFailureInfo), now.Add(time.Hour))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the same response changed the status:\n%s", diff)
		}
		switch first.TransitionStatus {
		case v1alpha1.UpToDate, v1alpha1.InProgress, v1alpha1.BlockedByFailedLoad:
		default:
			t.Fatalf("transition %q", first.TransitionStatus)
		}
		if first.ActiveModelState == "" || first.FailedCopies > first.TotalCopies {
			t.Fatalf("status %+v, want an active state and no more failed copies than copies", first)
		}
		if f := first.LastFailureInfo; f != nil && f.Time != nil && f.Time.Nanosecond() != 0 {
			t.Fatalf("time %s has fractions of a second, which the API does not store", f.Time)
		}
	})
}

// Credentials in messages of the mesh are redacted before the message is truncated: those in a truncated URL would not be detected.
func TestWithCallErrorRedactsCredentials(t *testing.T) {
	for name, length := range map[string]int{"short message": 10, "message truncated after the password": redact.MaxNote - 24} {
		state := &modelState{failures: maxFailures}
		scheduleNextCall(t.Context(), state, v1alpha1.PredictorStatus{}, errors.New(strings.Repeat("x", length)+" https://user:hunter2@mesh.example.com"), now)
		got := (&modelReconciler{}).withCallError(&resourceModel{}, state, v1alpha1.PredictorStatus{}).LastFailureInfo
		if got == nil || !strings.HasPrefix(got.Message, messageMeshUnreachable) || strings.Contains(got.Message, "hunter2") {
			t.Errorf("%s: failure %+v, want no password", name, got)
		}
	}
}

func TestErrorOfMeshIsClipped(t *testing.T) {
	state := &modelState{}
	scheduleNextCall(t.Context(), state, v1alpha1.PredictorStatus{}, errors.New(strings.Repeat("x", 1<<20)), now)
	if len(state.lastError) > redact.MaxNote {
		t.Errorf("an error of %d bytes is stored, want at most %d", len(state.lastError), redact.MaxNote)
	}
}
