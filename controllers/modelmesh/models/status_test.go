package models

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

var now = time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)

// at is a moment as the mesh counts it, and second as the API keeps it.
func at(d time.Duration) uint64 { return uint64(now.Add(d).UnixMilli()) }
func secondsAfter(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: now.Add(d).Truncate(time.Second)}
}

// concrete is the status of a concrete model. One that an instance failed to load has a copy in that state.
func concrete(state meshpb.ModelStatusInfo_ModelStatus, errors ...string) *meshpb.ModelStatusInfo {
	m := &meshpb.ModelStatusInfo{Status: state, Errors: errors}
	if state == loadFailed && (len(errors) == 0 || !strings.HasPrefix(errors[0], noInstancePrefix)) {
		m.ModelCopyInfos = append(m.ModelCopyInfos, copyAt("a", loadFailed, 0))
	}
	return m
}

func with(m *meshpb.ModelStatusInfo, copies ...*meshpb.ModelStatusInfo_ModelCopyInfo) *meshpb.ModelStatusInfo {
	m.ModelCopyInfos = copies
	return m
}

func copyAt(location string, state meshpb.ModelStatusInfo_ModelStatus, time uint64) *meshpb.ModelStatusInfo_ModelCopyInfo {
	return &meshpb.ModelStatusInfo_ModelCopyInfo{Location: location, CopyStatus: state, Time: time}
}

const (
	notFound      = meshpb.ModelStatusInfo_NOT_FOUND
	notLoaded     = meshpb.ModelStatusInfo_NOT_LOADED
	loading       = meshpb.ModelStatusInfo_LOADING
	loaded        = meshpb.ModelStatusInfo_LOADED
	loadFailed    = meshpb.ModelStatusInfo_LOADING_FAILED
	unknown       = meshpb.ModelStatusInfo_UNKNOWN
	defined       = meshpb.VModelStatusInfo_DEFINED
	transitioning = meshpb.VModelStatusInfo_TRANSITIONING
	blocked       = meshpb.VModelStatusInfo_TRANSITION_FAILED
)

// singleModel is the answer for a vmodel with one model.
func singleModel(m *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	return &meshpb.VModelStatusInfo{Status: defined, ActiveModelId: "m", TargetModelId: "m", ActiveModelStatus: m, TargetModelStatus: m}
}

// replacedModel is the answer for a vmodel whose model is to be replaced.
func replacedModel(s meshpb.VModelStatusInfo_VModelStatus, active, target *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	return &meshpb.VModelStatusInfo{Status: s, ActiveModelId: "old", TargetModelId: "new", ActiveModelStatus: active, TargetModelStatus: target}
}

// [modelmesh-66] [modelmesh-67] [modelmesh-68] [modelmesh-69] [modelmesh-70]
func TestReadingOfAModel(t *testing.T) {
	const home = "There are no running instances that meet the label requirements of type "
	for name, tc := range map[string]struct {
		in   *meshpb.ModelStatusInfo
		want concreteStatus
	}{
		"no status":           {nil, concreteStatus{v1alpha1.Pending, "", "", true}},
		"not found":           {concrete(notFound), concreteStatus{}},
		"unknown":             {concrete(unknown, "x"), concreteStatus{}},
		"not loaded":          {concrete(notLoaded), concreteStatus{v1alpha1.Standby, "", "", true}},
		"loading":             {concrete(loading), concreteStatus{v1alpha1.Loading, "", "", true}},
		"loading after fault": {concrete(loading, "first", "second"), concreteStatus{v1alpha1.Loading, v1alpha1.ModelLoadFailed, "first", true}},
		"loaded":              {concrete(loaded), concreteStatus{v1alpha1.Loaded, "", "", true}},
		"two errors":          {concrete(loadFailed, "first", "second"), concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "first", true}},
		"no error":            {concrete(loadFailed), concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "", true}},
		"no home for a type": {concrete(loadFailed, home+"mt:SomeType: [mt:SomeType]"),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"no instance available": {&meshpb.ModelStatusInfo{Status: loadFailed, Errors: []string{"Nowhere available to load"}},
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"only a copy that is lost": {with(concrete(loadFailed, "Nowhere available to load"), copyAt("a", unknown, 1)),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"right after a failure": {concrete(loadFailed, "io.grpc.StatusRuntimeException: INTERNAL: x"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "INTERNAL: x", true}},
		"no home for a runtime": {concrete(loadFailed, home+"rt:SomeRuntime: [rt:SomeRuntime]"),
			concreteStatus{v1alpha1.Loading, v1alpha1.RuntimeUnhealthy, "Waiting for supporting runtime Pod to become available", true}},
		"no such runtime": {concrete(loadFailed, home+"rt:SomeRuntime: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.RuntimeNotRecognized,
				"Specified runtime name not recognized: create or enable the runtime SomeRuntime, or name another one", true}},
		"no runtime for a type": {concrete(loadFailed, home+"mt:SomeType: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", true}},
		"text in another part of the message": {concrete(loadFailed, "x: "+home+"mt:a: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "x: " + home + "mt:a: [_no_runtime]", true}},
		"only the first error counts": {concrete(loadFailed, "first", home+"mt:a: [_no_runtime]"),
			concreteStatus{v1alpha1.FailedToLoad, v1alpha1.ModelLoadFailed, "first", true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseConcreteStatus(tc.in); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func failure(reason v1alpha1.FailureReason, message, id, location string, time *metav1.Time) *v1alpha1.FailureInfo {
	return &v1alpha1.FailureInfo{Reason: reason, Message: message, ModelID: id, Location: location, Time: time}
}

var unhealthy = failure(v1alpha1.RuntimeUnhealthy, messageNoPods, "m", "", nil)

func TestStatusAfterAnAnswer(t *testing.T) {
	fresh := v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Pending}
	ready := v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Loaded, TotalCopies: 1, Available: true}
	const noSuch = noInstancePrefix + "mt:a: [_no_runtime]"
	for name, tc := range map[string]struct {
		before v1alpha1.PredictorStatus
		info   *meshpb.VModelStatusInfo
		want   v1alpha1.PredictorStatus
	}{
		"loading": {fresh, singleModel(with(concrete(loading), copyAt("a", loading, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", TotalCopies: 1, Available: true}},
		"loaded twice": {fresh, singleModel(with(concrete(loaded), copyAt("a", loaded, 1), copyAt("b", loaded, 2))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", TotalCopies: 2, Available: true}},
		"loaded, and failed on another pod": {fresh, singleModel(with(concrete(loaded, "x"), copyAt("a", loaded, 1), copyAt("b", loadFailed, 2))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", TotalCopies: 2, FailedCopies: 1, Available: true}},
		"failed": {fresh, singleModel(with(concrete(loadFailed, "broken"), copyAt("a", loading, 1), copyAt("b", loadFailed, at(-time.Minute)), copyAt("c", loadFailed, at(0)))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", TotalCopies: 3, FailedCopies: 2,
				LastFailureInfo: failure("ModelLoadFailed", "broken", "m", "b", secondsAfter(-time.Minute))}},
		"failed without a time": {fresh, singleModel(concrete(loadFailed, "broken")),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: failure("ModelLoadFailed", "broken", "m", "a", secondsAfter(0)), FailedCopies: 1, TotalCopies: 1}},
		"no runtime": {fresh, singleModel(with(concrete(loadFailed, noSuch), copyAt("a", loadFailed, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: failure("NoSupportingRuntime", messageUnsupported, "m", "", secondsAfter(0))}},
		"only the active status": {fresh, &meshpb.VModelStatusInfo{Status: defined, ActiveModelId: "m", TargetModelId: "m", ActiveModelStatus: concrete(loadFailed, "broken")},
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: failure("ModelLoadFailed", "broken", "m", "a", secondsAfter(0)), FailedCopies: 1, TotalCopies: 1}},
		"waiting for a pod, loading": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Pending", LastFailureInfo: unhealthy}, singleModel(concrete(loading)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: unhealthy}},
		"waiting for a pod, loaded": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: unhealthy}, singleModel(concrete(loaded)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
		"waiting for a pod, evicted": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", LastFailureInfo: unhealthy}, singleModel(concrete(notLoaded)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Standby", Available: true}},
		"a failure that is over": {v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "FailedToLoad", LastFailureInfo: failure("ModelLoadFailed", "x", "m", "", nil)}, singleModel(concrete(loading)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loading", Available: true}},
		"replacing": {ready, replacedModel(transitioning, with(concrete(loaded), copyAt("a", loaded, 1)), with(concrete(loading), copyAt("b", loading, 1))),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading", TotalCopies: 2, Available: true}},
		"replacing failed": {ready, replacedModel(blocked, with(concrete(loaded), copyAt("a", loaded, 1)), with(concrete(loadFailed, "broken"), copyAt("b", loadFailed, at(0)))),
			v1alpha1.PredictorStatus{TransitionStatus: "BlockedByFailedLoad", ActiveModelState: "Loaded", TargetModelState: "FailedToLoad", TotalCopies: 2, FailedCopies: 1, Available: true,
				LastFailureInfo: failure("ModelLoadFailed", "broken", "new", "b", secondsAfter(0))}},
		"replacing waits for a pod": {ready, replacedModel(blocked, concrete(loaded), concrete(loadFailed, noInstancePrefix+"mt:a: [mt:a]")),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading",
				LastFailureInfo: failure("RuntimeUnhealthy", messageNoSupportingPod, "new", "", secondsAfter(0))}},
		"no word about the target": {v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading"}, replacedModel(transitioning, concrete(loaded), nil),
			v1alpha1.PredictorStatus{TransitionStatus: "InProgress", ActiveModelState: "Loaded", TargetModelState: "Loading", Available: true}},
		"the mesh does not know": {ready, replacedModel(meshpb.VModelStatusInfo_UNKNOWN, concrete(unknown), concrete(notFound)),
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
		"vmodel does not exist": {ready, &meshpb.VModelStatusInfo{ActiveModelStatus: concrete(notFound)},
			v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded", Available: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := withVModelStatus(tc.before, parseVModelStatus(tc.info), now)
			got.Available = isAvailable(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A failure that continues is reported with the time at which it began, and where it was reported first.
func TestTimeOfFailureIsKept(t *testing.T) {
	info := singleModel(concrete(loadFailed, noInstancePrefix+"mt:a: [_no_runtime]"))
	first := withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(info), now)
	later := withVModelStatus(first, parseVModelStatus(info), now.Add(time.Hour))
	if diff := cmp.Diff(first, later); diff != "" {
		t.Errorf("nothing has happened:\n%s", diff)
	}
	info.TargetModelId, info.ActiveModelId = "n", "n"
	if another := withVModelStatus(first, parseVModelStatus(info), now.Add(time.Hour)); !another.LastFailureInfo.Time.Equal(secondsAfter(time.Hour)) {
		t.Errorf("another model failed at %s", another.LastFailureInfo.Time)
	}

	a, b := copyAt("a", loadFailed, at(0)), copyAt("b", loadFailed, at(time.Minute))
	first = withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(singleModel(with(concrete(loadFailed, "x"), a, b))), now)
	later = withVModelStatus(first, parseVModelStatus(singleModel(with(concrete(loadFailed, "x"), b, a))), now)
	if diff := cmp.Diff(first, later); diff != "" || first.LastFailureInfo.Location != "a" {
		t.Errorf("the status depends on the order of copies:\n%s", diff)
	}
	later = withVModelStatus(first, parseVModelStatus(singleModel(with(concrete(loadFailed, "x"), b))), now)
	if later.LastFailureInfo.Location != "b" {
		t.Errorf("the failure at %s is over", later.LastFailureInfo.Location)
	}
}

// The API server rejects a status with a year of more than four digits.
func TestTimesOutOfRangeAreOmitted(t *testing.T) {
	for ms, want := range map[uint64]*metav1.Time{
		0: secondsAfter(0), maxUnixMilli: metaTime(time.UnixMilli(maxUnixMilli)), maxUnixMilli + 1: secondsAfter(0), math.MaxInt64: secondsAfter(0), math.MaxUint64: secondsAfter(0),
	} {
		info := singleModel(with(concrete(loadFailed, "x"), copyAt("a", loadFailed, ms)))
		first := withVModelStatus(v1alpha1.PredictorStatus{}, parseVModelStatus(info), now)
		f := first.LastFailureInfo
		if !f.Time.Equal(want) || f.Location != "a" || f.Time.UTC().Year() > 9999 {
			t.Errorf("%d ms: %s at %s, want %s", ms, f.Time, f.Location, want)
		}
		if diff := cmp.Diff(first, withVModelStatus(first, parseVModelStatus(info), now.Add(time.Hour))); diff != "" {
			t.Errorf("the same response changed the status:\n%s", diff)
		}
	}
}

// The pods learn the type of an existing runtime later, so its models wait.
func TestModelOfUnknownRuntimeWaits(t *testing.T) {
	for _, text := range []string{"mt:a: [_no_runtime]", "rt:a: [_no_runtime]"} {
		a := parseVModelStatus(singleModel(concrete(loadFailed, noInstancePrefix+text)))
		a.active, a.target = a.active.waitIfUnsupported(), a.target.waitIfUnsupported()
		s := withVModelStatus(v1alpha1.PredictorStatus{}, a, now)
		if s.ActiveModelState != v1alpha1.Loading || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy || s.LastFailureInfo.Message != messageNoSupportingPod || isAvailable(s) {
			t.Errorf("%s: got status %+v, want Loading without a supporting pod", text, s)
		}
	}
	if r := parseLoadFailure("broken", []*meshpb.ModelStatusInfo_ModelCopyInfo{copyAt("a", loadFailed, 1)}); r.waitIfUnsupported() != r {
		t.Errorf("a load that failed is none of that: %+v", r)
	}
}

func TestAvailableFollowsModelState(t *testing.T) {
	for state, want := range map[v1alpha1.ModelState]bool{
		"": false, "Pending": false, "Standby": true, "Loading": true, "Loaded": true, "FailedToLoad": false,
	} {
		s := v1alpha1.PredictorStatus{ActiveModelState: state}
		if got := isAvailable(s); got != want {
			t.Errorf("%q: got %t, want %t", state, got, want)
		}
		if s.LastFailureInfo = unhealthy; isAvailable(s) {
			t.Errorf("%q: no pod is there", state)
		}
		s.LastFailureInfo = failure(v1alpha1.ModelLoadFailed, "", "", "", nil)
		if got := isAvailable(s); got != want {
			t.Errorf("%q, replacement failed: %t, want %t", state, got, want)
		}
	}
}

func TestWantsLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		status v1alpha1.PredictorStatus
		want   bool
	}{
		"new":               {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending}, true},
		"failed":            {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.FailedToLoad}, true},
		"being replaced":    {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loaded, TargetModelState: v1alpha1.Standby}, true},
		"waiting for a pod": {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading, LastFailureInfo: unhealthy}, true},
		"loading":           {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading}, false},
		"loading again":     {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading, LastFailureInfo: failure("ModelLoadFailed", "", "", "", nil)}, false},
		"loaded":            {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loaded}, false},
		"standby":           {v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Standby, LastFailureInfo: unhealthy}, false},
	} {
		if got := needsLoad(tc.status); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestStatusOfUnregisteredModel(t *testing.T) {
	s := withFailure(v1alpha1.PredictorStatus{TransitionStatus: "UpToDate", ActiveModelState: "Loaded"}, v1alpha1.InvalidPredictorSpec, "why", "m")
	if s.TransitionStatus != v1alpha1.InvalidSpec || s.ActiveModelState != v1alpha1.Loaded || *s.LastFailureInfo != *failure("InvalidPredictorSpec", "why", "m", "", nil) {
		t.Errorf("got status %+v, want InvalidSpec with the loaded model unchanged", s)
	}
	s = withFailure(v1alpha1.PredictorStatus{ActiveModelState: "Pending"}, v1alpha1.RuntimeUnhealthy, messageNoPods, "m")
	if s.TransitionStatus != "" || *s.LastFailureInfo != *unhealthy { // the recordings of InferenceServices have an empty one
		t.Errorf("got status %+v, want RuntimeUnhealthy without a transition status", s)
	}
	for state, want := range map[v1alpha1.ModelState]v1alpha1.TransitionStatus{v1alpha1.Pending: v1alpha1.UpToDate, v1alpha1.Loaded: v1alpha1.InProgress} {
		if got := clearInvalidSpec(v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.InvalidSpec, ActiveModelState: state}); got.TransitionStatus != want {
			t.Errorf("mended while %s: %s", state, got.TransitionStatus)
		}
		if got := clearInvalidSpec(v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.BlockedByFailedLoad, ActiveModelState: state}); got.TransitionStatus != v1alpha1.BlockedByFailedLoad {
			t.Errorf("was not invalid: %s", got.TransitionStatus)
		}
	}
}

// anyModel draws a status that the mesh may report for a model, or nil.
func anyModel(t *rapid.T, name string) *meshpb.ModelStatusInfo {
	if rapid.IntRange(0, 5).Draw(t, name+" absent") == 0 {
		return nil
	}
	m := concrete(meshpb.ModelStatusInfo_ModelStatus(rapid.IntRange(0, 5).Draw(t, name)))
	m.Errors = rapid.SliceOfN(rapid.SampledFrom([]string{
		"broken", "", noInstancePrefix + "mt:a: [mt:a]", noInstancePrefix + "mt:a: [_no_runtime]", noInstancePrefix + "rt:a: [_no_runtime]",
	}), 0, 2).Draw(t, name+" errors")
	for range rapid.IntRange(0, 3).Draw(t, name+" copies") {
		m.ModelCopyInfos = append(m.ModelCopyInfos, copyAt(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "location"),
			meshpb.ModelStatusInfo_ModelStatus(rapid.IntRange(0, 5).Draw(t, "copy")), uint64(rapid.IntRange(0, 5000).Draw(t, "time"))))
	}
	return m
}

// For any response of the mesh, the status is valid, and the same response does not change it again. A status that
// kept changing would be written again and again.
func TestRepeatedResponseDoesNotChangeStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"", "m", "n"})
		info := &meshpb.VModelStatusInfo{
			Status:        meshpb.VModelStatusInfo_VModelStatus(rapid.SampledFrom([]int32{0, 1, 2, 3, 5}).Draw(t, "status")),
			ActiveModelId: ids.Draw(t, "active id"), TargetModelId: ids.Draw(t, "target id"),
			ActiveModelStatus: anyModel(t, "active"), TargetModelStatus: anyModel(t, "target"),
		}
		before := v1alpha1.PredictorStatus{
			TransitionStatus: v1alpha1.UpToDate, ActiveModelState: rapid.SampledFrom([]v1alpha1.ModelState{"Pending", "Loaded", "FailedToLoad"}).Draw(t, "before"),
			LastFailureInfo: rapid.SampledFrom([]*v1alpha1.FailureInfo{nil, unhealthy, failure("ModelLoadFailed", "broken", "m", "a", secondsAfter(0))}).Draw(t, "failure"),
		}
		first := withVModelStatus(before, parseVModelStatus(info), now)
		second := withVModelStatus(first, parseVModelStatus(info), now.Add(time.Hour))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the same response changed the status:\n%s", diff)
		}
		switch first.TransitionStatus {
		case v1alpha1.UpToDate, v1alpha1.InProgress, v1alpha1.BlockedByFailedLoad:
		default:
			t.Fatalf("transition %q", first.TransitionStatus)
		}
		if first.ActiveModelState == "" || first.FailedCopies > first.TotalCopies {
			t.Fatalf("got status %+v, want an active state and no more failed copies than copies", first)
		}
		if f := first.LastFailureInfo; f != nil && f.Time != nil && f.Time.Nanosecond() != 0 {
			t.Fatalf("the API would keep another time than %s", f.Time)
		}
	})
}

// Credentials in messages of the mesh are redacted before the text is truncated: a password in half of an address is not found.
func TestTroubleIsReportedWithoutCredentials(t *testing.T) {
	for name, before := range map[string]int{"whole": 10, "cut behind the password": modelmeshcontroller.MaxEventNoteBytes - 24} {
		e := &modelState{failures: maxFailures, lastError: strings.Repeat("x", before) + " https://user:hunter2@mesh.example.com"}
		got := (&modelReconciler{}).withCallError(&resourceModel{}, e, v1alpha1.PredictorStatus{}).LastFailureInfo
		if got == nil || !strings.HasPrefix(got.Message, messageMeshUnreachable) || strings.Contains(got.Message, "hunter2") {
			t.Errorf("%s: unexpected status %+v", name, got)
		}
	}
}
