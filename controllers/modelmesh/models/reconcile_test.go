package models

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func TestPredictorIsRegisteredAndLoaded(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	id := modelID(t, env)
	env.mesh.response = responseFor(id, withCopies(modelStatus(loading), newCopy("a", loading, 1)))
	if requeueAfter := env.reconcile(predictorKey); requeueAfter < minBackoff || requeueAfter > 2*minBackoff {
		t.Errorf("requeue after %s, want the minimum backoff", requeueAfter)
	}
	want := &meshpb.SetVModelRequest{
		VModelId: "digits", Owner: "ksp", TargetModelId: id, AutoDeleteTargetModel: true, LoadNow: true,
		ModelInfo: &meshpb.ModelInfo{Type: "mt:sklearn", Path: "sklearn/mnist-svm.joblib", Key: `{"storage_key":"localMinIO","model_type":{"name":"sklearn"}}`},
	}
	if got := env.mesh.setRequests; len(got) != 1 || got[0].String() != want.String() {
		t.Errorf("requests %v, want %v", got, want)
	}
	if diff := cmp.Diff(v1alpha1.PredictorStatus{
		TransitionStatus: "UpToDate", ActiveModelState: "Loading", TotalCopies: 1, Available: true, GRPCEndpoint: grpcAddress, HTTPEndpoint: restAddress,
	}, env.status()); diff != "" {
		t.Error(diff)
	}
	env.expectSteadyState(predictorKey)

	// A dirty state causes a call, whose response is that the model is loaded.
	env.mesh.response = responseFor(id, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
	env.states.markDirty(predictorKey)
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none", requeueAfter)
	}
	if s := env.status(); s.ActiveModelState != v1alpha1.Loaded || !s.Available {
		t.Errorf("unexpected status %+v", s)
	}
	if got := env.mesh.loadNow(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("LoadNow %v, want %v", got, []bool{true, false})
	}
	env.expectEvent("Normal ModelLoaded")
	env.clock.SetTime(now.Add(time.Hour))
	env.expectSteadyState(predictorKey)
}

// A paused model is not changed in the mesh, except that it can be deleted.
func TestPausedModelIsUnchangedUntilResumed(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	id := modelID(t, env)
	env.mesh.response = responseFor(id, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
	env.reconcile(predictorKey)
	calls := env.mesh.calls()
	env.updatePredictor(func(p *v1alpha1.Predictor) {
		p.Annotations = map[string]string{names.PausedAnnotation: "true"}
		p.Spec.Storage.Path, p.Generation = new("changed"), 2
	})
	env.reconcile(predictorKey)
	env.states.markDirty(predictorKey)
	env.expectSteadyState(predictorKey)
	if env.mesh.calls() != calls {
		t.Errorf("%d calls for a paused model, want none", env.mesh.calls()-calls)
	}
	paused := func() bool {
		p := &v1alpha1.Predictor{}
		if err := env.client.Get(t.Context(), objectKey, p); err != nil {
			t.Fatal(err)
		}
		if ready, _ := conditions.Get(p.Status.Conditions, conditions.Ready); conditions.IsTrue(p.Status.Conditions, reconciler.ConditionPaused) && ready.Status != metav1.ConditionFalse {
			t.Errorf("condition %+v of a paused model with a changed spec, want Ready False", ready)
		}
		return conditions.IsTrue(p.Status.Conditions, reconciler.ConditionPaused)
	}
	if !paused() {
		t.Error("the condition Paused is missing")
	}
	env.updatePredictor(func(p *v1alpha1.Predictor) { p.Annotations = nil })
	env.mesh.response = responseFor(modelID(t, env), withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
	env.reconcile(predictorKey)
	if requests := env.mesh.setRequests; paused() || requests[len(requests)-1].GetModelInfo().GetPath() != "changed" {
		t.Errorf("after the resumption: paused %t, requests %v", paused(), requests)
	}
	env.updatePredictor(func(p *v1alpha1.Predictor) { p.Annotations = map[string]string{names.PausedAnnotation: "true"} })
	if err := env.client.Delete(t.Context(), newPredictor()); err != nil {
		t.Fatal(err)
	}
	env.reconcile(predictorKey)
	if len(env.mesh.deleteRequests) != 1 {
		t.Error("the deleted model was not deleted from the mesh")
	}
}

func TestPausedInferenceServiceIsNotRegistered(t *testing.T) {
	s := newInferenceService(t, sklearnModel)
	s.Annotations[names.PausedAnnotation] = "true"
	env := newTestEnv(t, s)
	env.reconcile(inferenceServiceKey)
	env.expectSteadyState(inferenceServiceKey)
	if env.mesh.calls() != 0 {
		t.Errorf("%d calls for a paused InferenceService, want none", env.mesh.calls())
	}
}

// modelID returns the ID of the Predictor's model.
func modelID(t *testing.T, env *testEnv) string {
	t.Helper()
	model, err := env.sources["ksp"].get(t.Context(), objectKey)
	if err != nil {
		t.Fatal(err)
	}
	return model.modelID()
}

// A loading model is polled with backoff, because no event indicates a successful load.
func TestPollIntervalOfLoadingModelGrows(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loading))
	minDelay := minBackoff
	for range 10 {
		requeueAfter := env.reconcile(predictorKey)
		if requeueAfter < minDelay || requeueAfter > time.Duration(float64(minDelay)*(1+jitter))+time.Second {
			t.Fatalf("requeue after %s, want about %s", requeueAfter, minDelay)
		}
		env.clock.SetTime(env.clock.Now().Add(requeueAfter))
		minDelay = min(2*minDelay, maxPollInterval)
	}
	if got := len(env.mesh.setRequests); got != 10 {
		t.Errorf("%d calls, want 10", got)
	}
	if len(env.patches) != 1 {
		t.Errorf("%d writes, want 1", len(env.patches))
	}
}

// The status of a new model is written twice, regardless of the duration of the load.
func TestStatusWritesOfNewModel(t *testing.T) {
	for _, loadTime := range []time.Duration{time.Second / 2, 3 * time.Second} {
		t.Run(loadTime.String(), func(t *testing.T) {
			env := newTestEnv(t, newPredictor(func(p *v1alpha1.Predictor) { p.Status.ActiveModelState = v1alpha1.Pending })) // the default of the CRD
			env.mesh.response = responseFor(modelID(t, env), modelStatus(loading))
			for requeueAfter := time.Duration(1); env.clock.Now().Add(requeueAfter).Before(now.Add(loadTime)); env.clock.SetTime(env.clock.Now().Add(requeueAfter)) {
				if requeueAfter = env.reconcile(predictorKey); requeueAfter == 0 {
					t.Fatal("no requeue of a loading model")
				}
			}
			env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
			env.states.markDirty(predictorKey)
			env.reconcile(predictorKey)
			want := []string{"Loading", "Loaded"}
			if len(env.patches) != len(want) {
				t.Fatalf("patches %q, want one each for %q", env.patches, want)
			}
			for i, state := range want {
				if !strings.Contains(env.patches[i], `"activeModelState":"`+state+`"`) {
					t.Errorf("patch %s, want %s", env.patches[i], state)
				}
			}
			env.expectSteadyState(predictorKey)
		})
	}
}

// While the cached object is older than its last status update, the model is not reconciled for a limited time: an update would conflict.
func TestModelWaitsForCacheWithLastStatus(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	source := env.sources[modelmesh.SourcePredictor].(*predictorSource)
	newer := newPredictor()
	newer.ResourceVersion = "100000"
	source.writes.Record(t.Context(), env.client, newer, newer)
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != reconciler.StaleCacheRetry || len(env.patches)+env.mesh.calls() != 0 {
		t.Errorf("stale cache: requeue after %s, patches %q, %d calls", requeueAfter, env.patches, env.mesh.calls())
	}
	env.clock.SetTime(now.Add(time.Minute))
	if env.reconcile(predictorKey); len(env.patches) != 1 {
		t.Errorf("patches %q, want one", env.patches)
	}
}

func TestModelIsPendingWithoutPods(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.err = meshclient.ErrNoAddress
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none, because new addresses trigger the next reconcile", requeueAfter)
	}
	want := v1alpha1.PredictorStatus{
		TransitionStatus: "UpToDate", ActiveModelState: "Pending", LastFailureInfo: newFailure("RuntimeUnhealthy", "Waiting for runtime Pod to become available", modelID(t, env), "", nil),
	}
	if diff := cmp.Diff(want, env.status()); diff != "" { // as the legacy controller, see recordings_test.go
		t.Error(diff)
	}
	if !strings.Contains(env.patches[0], `"resourceVersion":"999"`) || !strings.Contains(env.patches[0], `"grpcEndpoint":""`) || !strings.Contains(env.patches[0], `"time":null`) {
		t.Errorf("patch %s", env.patches[0])
	}
	env.expectSteadyState(predictorKey)
	env.expectEvent("Normal RuntimeUnhealthy")

	env.mesh.err, env.mesh.response = nil, responseFor(modelID(t, env), modelStatus(loaded))
	if keys := env.states.markPodsChanged("ns"); !slices.Equal(keys, []types.NamespacedName{predictorKey}) {
		t.Errorf("enqueued %v, want %v", keys, []types.NamespacedName{predictorKey})
	}
	env.reconcile(predictorKey)
	if s := env.status(); !s.Available || s.LastFailureInfo != nil {
		t.Errorf("unexpected status %+v", s)
	}

	// Without pods, the model is not available.
	env.mesh.err = meshclient.ErrNoAddress
	env.states.markPodsChanged("ns")
	env.reconcile(predictorKey)
	if s := env.status(); s.Available || s.ActiveModelState != v1alpha1.Loaded || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy {
		t.Errorf("unexpected status %+v", s)
	}
}

func TestFailedCallIsRetried(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.err = status.Error(codes.Unavailable, "connection refused")
	requeueAfter := env.reconcile(predictorKey)
	if requeueAfter < minBackoff || len(env.patches) != 1 { // one patch sets the conditions
		t.Errorf("failed call: requeue after %s, %d writes", requeueAfter, len(env.patches))
	}
	env.expectSteadyState(predictorKey)
	env.mesh.err, env.mesh.response = nil, responseFor(modelID(t, env), modelStatus(loading))
	env.clock.SetTime(now.Add(requeueAfter))
	env.reconcile(predictorKey)
	if got := env.mesh.loadNow(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("LoadNow %v, want %v", got, []bool{true, true})
	}
	env.mesh.err = status.Error(codes.Internal, "internal error")
	env.states.markDirty(predictorKey)
	if requeueAfter := env.reconcile(predictorKey); requeueAfter == 0 || env.status().ActiveModelState != v1alpha1.Loading {
		t.Errorf("second failed call: requeue after %s, status %+v, want Loading unchanged", requeueAfter, env.status())
	}
}

func TestEventDuringCallMarksModelDirty(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loading))
	env.mesh.onNextCall = func() { env.states.markDirty(predictorKey) }
	env.reconcile(predictorKey)
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	env.reconcile(predictorKey)
	if s := env.status(); s.ActiveModelState != v1alpha1.Loaded {
		t.Errorf("status %+v, want Loaded, from the call after the event", s)
	}
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loadFailed, "x"))
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey) // LoadNow is false, because the model was loaded before
	env.states.markDirty(predictorKey)
	env.mesh.onNextCall = func() { env.states.markPodsChanged("ns") } // pods start during the call
	env.reconcile(predictorKey)
	env.reconcile(predictorKey)
	if got := env.mesh.loadNow(); !got[len(got)-1] {
		t.Errorf("LoadNow %v, want a load on the new pods", got)
	}
}

func TestChangedSpecReplacesModel(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	oldID := modelID(t, env)
	env.mesh.response = responseFor(oldID, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
	env.reconcile(predictorKey)
	path := "sklearn/changed"
	env.updatePredictor(func(p *v1alpha1.Predictor) { p.Spec.Storage.Path = &path })
	newID := modelID(t, env)
	info := transitionResponse(transitioning, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)), withCopies(modelStatus(loading), newCopy("a", loading, 1)))
	info.ActiveModelId, info.TargetModelId = oldID, newID
	env.mesh.response = info
	if requeueAfter := env.reconcile(predictorKey); requeueAfter == 0 {
		t.Error("no requeue during the transition")
	}
	if s := env.status(); s.TransitionStatus != v1alpha1.InProgress || s.TargetModelState != v1alpha1.Loading || !s.Available || s.TotalCopies != 2 || s.ActiveModelState != v1alpha1.Loaded {
		t.Errorf("unexpected status %+v", s)
	}
	if got := env.mesh.setRequests[1]; got.GetTargetModelId() != newID || got.GetVModelId() != "digits" {
		t.Errorf("request %v, want vmodel digits with the new model ID", got)
	}
	env.takeEvents()
	env.mesh.response = responseFor(newID, modelStatus(loaded))
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if s := env.status(); s.TransitionStatus != v1alpha1.UpToDate || s.TargetModelState != "" {
		t.Errorf("unexpected status %+v", s)
	}
	env.expectEvent("Normal ModelReplaced")
	env.expectSteadyState(predictorKey)
}

// With an invalid spec the previous model remains available, and its status is updated.
func TestInvalidSpecKeepsPreviousModel(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	oldID := modelID(t, env)
	env.mesh.response = responseFor(oldID, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
	env.reconcile(predictorKey)
	env.takeEvents()
	env.updatePredictor(func(p *v1alpha1.Predictor) { p.Spec.Path = "second/path" })
	env.reconcile(predictorKey)
	s := env.status()
	want := newFailure("InvalidPredictorSpec", "Only one of spec.path and spec.storage.path can be specified: remove spec.path", modelID(t, env), "", nil)
	if s.TransitionStatus != v1alpha1.InvalidSpec || !s.Available || s.ActiveModelState != v1alpha1.Loaded || !cmp.Equal(s.LastFailureInfo, want) {
		t.Errorf("status %+v, want InvalidSpec with the previous model available", s)
	}
	if len(env.mesh.setRequests) != 1 || len(env.mesh.getRequests) != 1 || env.mesh.getRequests[0].GetOwner() != "ksp" {
		t.Errorf("set requests %v, get requests %v", env.mesh.setRequests, env.mesh.getRequests)
	}
	env.expectEvent("Warning InvalidPredictorSpec Only one of")
	env.expectSteadyState(predictorKey)
	env.mesh.response = responseFor(oldID, modelStatus(notLoaded))
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if s := env.status(); s.ActiveModelState != v1alpha1.Standby || s.TransitionStatus != v1alpha1.InvalidSpec || s.LastFailureInfo == nil {
		t.Errorf("unexpected status %+v", s)
	}
	env.mesh.err = meshclient.ErrNoAddress
	env.states.markPodsChanged("ns")
	env.updatePredictor(func(p *v1alpha1.Predictor) { p.Spec.Path = "" })
	env.reconcile(predictorKey)
	if s := env.status(); s.TransitionStatus != v1alpha1.InProgress || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy {
		t.Errorf("corrected spec: status %+v, want InProgress with RuntimeUnhealthy", s)
	}
}

func TestInvalidNewModelIsNotRegistered(t *testing.T) {
	for name, prepare := range map[string]func(*testEnv){
		"no pods":            func(env *testEnv) { env.mesh.err = meshclient.ErrNoAddress },
		"mesh unreachable":   func(env *testEnv) { env.mesh.err = status.Error(codes.Unavailable, "refused") },
		"no client":          func(env *testEnv) { env.hasMeshClient = false },
		"namespace disabled": func(env *testEnv) { env.hasMeshClient, env.namespaceEnabled = false, false },
		"no vmodel": func(env *testEnv) {
			env.mesh.response = &meshpb.VModelStatusInfo{ActiveModelStatus: modelStatus(notFound)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, newPredictor(func(p *v1alpha1.Predictor) { p.Spec.Path = "x" }))
			prepare(env)
			env.reconcile(predictorKey)
			s := env.status()
			if s.TransitionStatus != v1alpha1.InvalidSpec || s.Available || s.ActiveModelState != v1alpha1.Pending || s.LastFailureInfo.Reason != v1alpha1.InvalidPredictorSpec {
				t.Errorf("status %+v, want InvalidSpec and no available model", s)
			}
			if len(env.mesh.setRequests) != 0 {
				t.Error("the invalid model was registered")
			}
		})
	}
}

func TestModelIDConflictIsReported(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.setErr = alreadyExists()
	env.mesh.response = &meshpb.VModelStatusInfo{ActiveModelStatus: modelStatus(notFound)} // no vmodel of this name has the owner ksp
	if requeueAfter := env.reconcile(predictorKey); requeueAfter == 0 {
		t.Error("no requeue after a conflict")
	}
	s := env.status()
	if s.LastFailureInfo.Message != "Predictor already exists with the same name from a different source" || s.TransitionStatus != v1alpha1.InvalidSpec || s.Available {
		t.Errorf("status %+v, want messageIDConflict", s)
	}
	env.expectSteadyState(predictorKey)
	env.mesh.response = responseFor("x", modelStatus(loaded))
	env.mesh.response.Owner = "isvc"
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if got := env.status().LastFailureInfo.Message; got != messageIDConflict {
		t.Error(got)
	}
	env.mesh.response.Owner = "ksp"
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if s := env.status(); s.LastFailureInfo.Message != messageSpecMismatch || s.ActiveModelState != v1alpha1.Loaded || !s.Available {
		t.Errorf("unexpected status %+v", s)
	}
	env.mesh.err = meshclient.ErrNoAddress
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if got := env.status().LastFailureInfo.Reason; got != v1alpha1.RuntimeUnhealthy {
		t.Error(got)
	}
	env.mesh.err = status.Error(codes.DeadlineExceeded, "too slow")
	env.states.markDirty(predictorKey)
	if requeueAfter := env.reconcile(predictorKey); requeueAfter == 0 {
		t.Error("no requeue after a failed call")
	}
}

func TestModelInDisabledNamespaceIsReported(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.hasMeshClient = false
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 || len(env.patches) != 1 {
		t.Errorf("no client: requeue after %s, writes %v, want one write and no requeue", requeueAfter, env.patches)
	}
	env.namespaceEnabled = false
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none, because the label triggers the next reconcile", requeueAfter)
	}
	if s := env.status(); s.LastFailureInfo == nil || s.LastFailureInfo.Message != messageNamespaceDisabled || s.Available {
		t.Errorf("unexpected status %+v", s)
	}
	env.expectSteadyState(predictorKey)
	env.hasMeshClient, env.namespaceEnabled, env.mesh.response = true, true, responseFor(modelID(t, env), modelStatus(loaded))
	env.states.markPodsChanged("ns")
	env.reconcile(predictorKey)
	if s := env.status(); !s.Available || s.LastFailureInfo != nil {
		t.Errorf("unexpected status %+v", s)
	}
}

func TestDeletedPredictorIsDeletedFromMesh(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	env.reconcile(predictorKey)
	if err := env.client.Delete(t.Context(), newPredictor()); err != nil {
		t.Fatal(err)
	}
	env.mesh.err = meshclient.ErrNoAddress
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none", requeueAfter)
	}
	env.mesh.err = status.Error(codes.Unavailable, "refused")
	env.states.markPodsChanged("ns")
	requeueAfter := env.reconcile(predictorKey)
	if requeueAfter < minBackoff {
		t.Errorf("requeue after %s, want at least the minimum backoff", requeueAfter)
	}
	env.mesh.err = nil
	env.clock.SetTime(now.Add(requeueAfter))
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none", requeueAfter)
	}
	if got := env.mesh.deleteRequests; len(got) != 3 || got[0].GetOwner() != "ksp" || got[0].GetVModelId() != "digits" {
		t.Errorf("delete requests %v, want 3, the first for vmodel digits of owner ksp", got)
	}
	if _, known := env.states.get(predictorKey); known {
		t.Error("the state of the deleted Predictor was not deleted")
	}
	env.expectSteadyState(predictorKey)
}

// A model whose resource was deleted while the operator was not running is deleted from the mesh.
func TestModelWithoutResourceIsDeletedFromMesh(t *testing.T) {
	for name, tc := range map[string]struct {
		key   types.NamespacedName
		owner string
	}{"Predictor": {predictorKey, "ksp"}, "InferenceService": {inferenceServiceKey, "isvc"}} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t)
			env.reconcile(tc.key)
			if env.mesh.calls() != 0 {
				t.Error("the mesh was called for an unknown model")
			}
			env.states.markDirty(tc.key)
			env.reconcile(tc.key)
			if got := env.mesh.deleteRequests; len(got) != 1 || got[0].GetOwner() != tc.owner {
				t.Errorf("delete requests %v, want one for owner %s", got, tc.owner)
			}
			env.expectSteadyState(tc.key)
		})
	}
	env := newTestEnv(t)
	env.hasMeshClient = false
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	if _, known := env.states.get(predictorKey); !known {
		t.Error("the state was deleted although the namespace has no client")
	}
	env.namespaceEnabled = false
	env.reconcile(predictorKey)
	if _, known := env.states.get(predictorKey); known || env.mesh.calls() != 0 {
		t.Error("disabled namespace: want no state and no call")
	}
}

func TestModelIsKeptIfAPIIsNotServed(t *testing.T) {
	env := newTestEnv(t)
	env.servedAPIs = capability.NewSet()
	env.states.markDirty(inferenceServiceKey)
	env.reconcile(inferenceServiceKey)
	if env.mesh.calls() != 0 {
		t.Error("the mesh was called although InferenceServices are not served")
	}
}

func TestTerminatingModelIsNotLoaded(t *testing.T) {
	env := newTestEnv(t, newPredictor(func(p *v1alpha1.Predictor) {
		p.Finalizers, p.DeletionTimestamp = []string{"example.com/wait"}, &metav1.Time{Time: now}
	}))
	env.mesh.response = responseFor(modelID(t, env), modelStatus(notLoaded))
	env.reconcile(predictorKey)
	if got := env.mesh.loadNow(); !slices.Equal(got, []bool{false}) {
		t.Errorf("LoadNow %v, want %v", got, []bool{false})
	}
}

// A model waits up to runtimeGracePeriod until the mesh knows its runtime.
func TestModelWaitsUntilMeshKnowsRuntime(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.hasRuntime = true
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	if requeueAfter := env.reconcile(predictorKey); requeueAfter == 0 || env.status().ActiveModelState != v1alpha1.Loading {
		t.Errorf("requeue after %s, status %+v, want Loading", requeueAfter, env.status())
	}
	env.clock.SetTime(now.Add(runtimeGracePeriod))
	env.reconcile(predictorKey)
	if s := env.status(); s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Reason != v1alpha1.NoSupportingRuntime {
		t.Errorf("unexpected status %+v", s)
	}
	env.expectSteadyState(predictorKey)
	if len(env.patches) != 2 {
		t.Errorf("%d writes, want 2", len(env.patches))
	}

	env = newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	env.reconcile(predictorKey)
	if s := env.status(); s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Message != messageUnsupported || s.LastFailureInfo.Location != "" || s.LastFailureInfo.Time == nil {
		t.Errorf("no runtime: status %+v, want FailedToLoad with messageUnsupported", s)
	}
}

// A status that another client changed is restored without a call.
func TestChangedStatusIsRestored(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	env.reconcile(predictorKey)
	p := newPredictor()
	if err := env.client.Get(t.Context(), objectKey, p); err != nil {
		t.Fatal(err)
	}
	p.Status = v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.FailedToLoad, TransitionStatus: v1alpha1.InvalidSpec}
	if err := env.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	calls := env.mesh.calls()
	env.reconcile(predictorKey)
	if s := env.status(); s.ActiveModelState != v1alpha1.Loaded || s.TransitionStatus != v1alpha1.UpToDate || env.mesh.calls() != calls {
		t.Errorf("status %+v after %d more calls, want it restored without a call", s, env.mesh.calls()-calls)
	}
}

func TestFailedStatusWriteIsRetried(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	group := schema.GroupResource{Resource: "predictors"}
	env.patchErr = apierrors.NewConflict(group, "digits", errors.New("changed"))
	if requeueAfter := env.reconcile(predictorKey); requeueAfter != reconciler.ConflictRetry || len(env.patches) != 1 {
		t.Errorf("conflict: requeue after %s, %d writes", requeueAfter, len(env.patches))
	}
	env.patchErr = apierrors.NewInternalError(errors.New("internal error"))
	if _, err := env.Reconcile(t.Context(), ctrl.Request{NamespacedName: predictorKey}); err == nil {
		t.Error("Reconcile returned no error, want that of the status update")
	}
	if len(env.takeEvents()) != 0 {
		t.Error("an Event was emitted for a status that was not written")
	}
	env.patchErr = nil
	env.reconcile(predictorKey)
	if env.mesh.calls() != 1 || !env.status().Available {
		t.Errorf("%d calls, status %+v, want one call and an available model", env.mesh.calls(), env.status())
	}
}

func TestReconcileReturnsReadErrors(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	readErr := errors.New("read failed")
	env.enabled = func(_ context.Context, _ string) (bool, error) { return false, readErr }
	env.hasMeshClient = false
	if _, err := env.Reconcile(t.Context(), ctrl.Request{NamespacedName: predictorKey}); !errors.Is(err, readErr) {
		t.Errorf("error %v, want the read error", err)
	}
	env = newTestEnv(t, newPredictor())
	env.supported = func(context.Context, string, string) (bool, error) { return false, readErr }
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	if _, err := env.Reconcile(t.Context(), ctrl.Request{NamespacedName: predictorKey}); !errors.Is(err, readErr) {
		t.Errorf("error %v, want the read error", err)
	}
	if state, _ := env.states.get(predictorKey); !state.dirty {
		t.Error("the state is not dirty after a failed reconcile")
	}
}

// A read error before the call to the mesh neither closes an open circuit nor counts as a failed call.
func TestReadErrorBeforeCallKeepsCircuitOpen(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(notLoaded))
	env.reconcile(predictorKey)
	call(t, &env.breakers, status.Error(codes.Unavailable, "refused"))
	env.clock.SetTime(now.Add(minBackoff)) // the next call may start
	env.states.markPodsChanged("ns")
	readErr := errors.New("read failed")
	env.supported = func(context.Context, string, string) (bool, error) { return false, readErr }
	calls := env.mesh.calls()
	if _, err := env.Reconcile(t.Context(), ctrl.Request{NamespacedName: predictorKey}); !errors.Is(err, readErr) || env.mesh.calls() != calls {
		t.Errorf("error %v, %d calls, want the read error and no call", err, env.mesh.calls()-calls)
	}
	if breaker := env.breakers.byNamespace["ns"]; breaker == nil || breaker.nextProbe.IsZero() {
		t.Error("a read error closed the circuit")
	}
	if state, _ := env.states.get(predictorKey); state.failures > 0 {
		t.Errorf("%d failed calls, want none", state.failures)
	}
}

// [modelmesh-71] Fields without effect are reported once.
func TestIgnoredFieldsAreReportedOnce(t *testing.T) {
	gpu, account := v1alpha1.GPURequest("required"), "robot"
	env := newTestEnv(t, newPredictor(func(p *v1alpha1.Predictor) { p.Spec.GPU, p.Spec.ServiceAccountName = &gpu, &account }))
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loading))
	env.reconcile(predictorKey)
	got := env.takeEvents()
	if len(got) != 2 || !strings.HasPrefix(got[0], "Warning FieldIgnored spec.gpu") || !strings.HasPrefix(got[1], "Warning FieldIgnored spec.serviceAccountName") {
		t.Errorf("events %q, want one each for spec.gpu and spec.serviceAccountName", got)
	}
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loaded))
	env.states.markDirty(predictorKey)
	env.reconcile(predictorKey)
	env.expectEvent("Normal ModelLoaded")
}

// A recreated Predictor is loaded: the state of the deleted one is not used.
func TestRecreatedModelIsLoaded(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor(modelID(t, env), modelStatus(loading))
	env.reconcile(predictorKey)
	if err := env.client.Delete(t.Context(), newPredictor()); err != nil {
		t.Fatal(err)
	}
	env.mesh.onNextCall = func() { env.states.markDirty(predictorKey) } // the mesh deletes the key in etcd
	env.reconcile(predictorKey)
	if err := env.client.Create(t.Context(), newPredictor(func(p *v1alpha1.Predictor) { p.UID = "recreated" })); err != nil {
		t.Fatal(err)
	}
	env.reconcile(predictorKey)
	if got := env.mesh.loadNow(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("LoadNow %v, want %v", got, []bool{true, true})
	}
}

// The deletion of a model that the mesh does not have is not retried. A failed call is retried with exponential backoff: up to maxBackoff
// if the mesh is unreachable, and up to maxRefusedBackoff if it refuses the deletion.
func TestFailedDeletion(t *testing.T) {
	for code, wantDelay := range map[codes.Code]time.Duration{
		codes.NotFound: 0, codes.InvalidArgument: 0, codes.Unavailable: maxBackoff, codes.PermissionDenied: maxRefusedBackoff,
	} {
		env := newTestEnv(t)
		env.states.markDirty(predictorKey)
		env.mesh.err = status.Error(code, "test")
		var delay time.Duration
		for range 20 {
			result, err := env.Reconcile(t.Context(), ctrl.Request{NamespacedName: predictorKey})
			if err != nil {
				t.Fatal(err)
			}
			delay = result.RequeueAfter
			env.clock.SetTime(env.clock.Now().Add(delay))
		}
		if _, known := env.states.get(predictorKey); known != (wantDelay > 0) || delay < wantDelay || float64(delay) > float64(wantDelay)*(1+jitter) {
			t.Errorf("%s: delay %s, state kept: %t, want a delay of %s", code, delay, known, wantDelay)
		}
	}
}
