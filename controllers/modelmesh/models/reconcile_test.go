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
	w := newTestEnv(t, predictor())
	id := modelID(t, w)
	w.mesh.response = statusOf(id, with(concrete(loading), copyAt("a", loading, 1)))
	if again := w.reconcile(aPredictor); again < minBackoff || again > 2*minBackoff {
		t.Errorf("unexpected requeue after %s", again)
	}
	want := &meshpb.SetVModelRequest{
		VModelId: "digits", Owner: "ksp", TargetModelId: id, AutoDeleteTargetModel: true, LoadNow: true,
		ModelInfo: &meshpb.ModelInfo{Type: "mt:sklearn", Path: "sklearn/mnist-svm.joblib", Key: `{"storage_key":"localMinIO","model_type":{"name":"sklearn"}}`},
	}
	if got := w.mesh.sets; len(got) != 1 || got[0].String() != want.String() {
		t.Errorf("got %v, want %v", got, want)
	}
	if diff := cmp.Diff(v1alpha1.PredictorStatus{
		TransitionStatus: "UpToDate", ActiveModelState: "Loading", TotalCopies: 1, Available: true, GRPCEndpoint: grpcAddress, HTTPEndpoint: restAddress,
	}, w.status()); diff != "" {
		t.Error(diff)
	}
	w.expectIdle(aPredictor)

	// The mesh reports in etcd that the model is loaded.
	w.mesh.response = statusOf(id, with(concrete(loaded), copyAt("a", loaded, 1)))
	w.states.markDirty(aPredictor)
	if again := w.reconcile(aPredictor); again != 0 {
		t.Errorf("unexpected requeue after %s", again)
	}
	if s := w.status(); s.ActiveModelState != v1alpha1.Loaded || !s.Available {
		t.Errorf("unexpected status: %+v", s)
	}
	if got := w.mesh.loads(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("load orders %v, want %v", got, []bool{true, false})
	}
	w.oneEvent("Normal ModelLoaded")
	w.clock.SetTime(now.Add(time.Hour))
	w.expectIdle(aPredictor)
}

// A paused model can still be deleted.
func TestPausedModelIsUnchangedUntilResumed(t *testing.T) {
	w := newTestEnv(t, predictor())
	id := modelID(t, w)
	w.mesh.response = statusOf(id, with(concrete(loaded), copyAt("a", loaded, 1)))
	w.reconcile(aPredictor)
	calls := w.mesh.calls()
	w.change(func(p *v1alpha1.Predictor) {
		p.Annotations = map[string]string{names.PausedAnnotation: "true"}
		p.Spec.Storage.Path, p.Generation = new("elsewhere"), 2
	})
	w.reconcile(aPredictor)
	w.states.markDirty(aPredictor) // etcd reports something
	w.expectIdle(aPredictor)
	if w.mesh.calls() != calls {
		t.Errorf("%d calls of the mesh for a paused model", w.mesh.calls()-calls)
	}
	paused := func() bool {
		p := &v1alpha1.Predictor{}
		if err := w.client.Get(t.Context(), inCluster, p); err != nil {
			t.Fatal(err)
		}
		if ready, _ := conditions.Get(p.Status.Conditions, conditions.Ready); conditions.IsTrue(p.Status.Conditions, reconciler.ConditionPaused) && ready.Status != metav1.ConditionFalse {
			t.Errorf("a changed spec that has no effect is ready: %+v", ready)
		}
		return conditions.IsTrue(p.Status.Conditions, reconciler.ConditionPaused)
	}
	if !paused() {
		t.Error("the condition Paused is missing")
	}
	w.change(func(p *v1alpha1.Predictor) { p.Annotations = nil })
	w.mesh.response = statusOf(modelID(t, w), with(concrete(loaded), copyAt("a", loaded, 1)))
	w.reconcile(aPredictor)
	if sets := w.mesh.sets; paused() || sets[len(sets)-1].GetModelInfo().GetPath() != "elsewhere" {
		t.Errorf("after it is resumed: paused %t, %v", paused(), sets)
	}
	w.change(func(p *v1alpha1.Predictor) { p.Annotations = map[string]string{names.PausedAnnotation: "true"} })
	if err := w.client.Delete(t.Context(), predictor()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(aPredictor)
	if len(w.mesh.deletes) != 1 {
		t.Error("want one deletion of the model in the mesh")
	}
}

func TestPausedInferenceServiceIsNotRegistered(t *testing.T) {
	s := service(t, aModel)
	s.Annotations[names.PausedAnnotation] = "true"
	w := newTestEnv(t, s)
	w.reconcile(aService)
	w.expectIdle(aService)
	if w.mesh.calls() != 0 {
		t.Errorf("%d calls of the mesh for a paused InferenceService", w.mesh.calls())
	}
}

// modelID is the id of the Predictor's model.
func modelID(t *testing.T, w *testEnv) string {
	t.Helper()
	rec, err := w.sources["ksp"].get(t.Context(), inCluster)
	if err != nil {
		t.Fatal(err)
	}
	return rec.modelID()
}

// A loading model is polled, because no event reports the end of a load.
func TestPollIntervalOfLoadingModelGrows(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loading))
	least := minBackoff
	for range 10 {
		again := w.reconcile(aPredictor)
		if again < least || again > time.Duration(float64(least)*(1+jitter))+time.Second {
			t.Fatalf("pause %s, want about %s", again, least)
		}
		w.clock.SetTime(w.clock.Now().Add(again))
		least = min(2*least, maxPollInterval)
	}
	if got := len(w.mesh.sets); got != 10 {
		t.Errorf("%d calls of the mesh, want 10", got)
	}
	if len(w.patches) != 1 {
		t.Errorf("%d writes for one state", len(w.patches))
	}
}

// A new model costs two updates of its status, however long it loads.
func TestRequestsOfANewModel(t *testing.T) {
	for _, loads := range []time.Duration{time.Second / 2, 3 * time.Second} {
		t.Run(loads.String(), func(t *testing.T) {
			w := newTestEnv(t, predictor(func(p *v1alpha1.Predictor) { p.Status.ActiveModelState = v1alpha1.Pending })) // the default of the CRD
			w.mesh.response = statusOf(modelID(t, w), concrete(loading))
			for again := time.Duration(1); w.clock.Now().Add(again).Before(now.Add(loads)); w.clock.SetTime(w.clock.Now().Add(again)) {
				if again = w.reconcile(aPredictor); again == 0 {
					t.Fatal("want a requeue")
				}
			}
			w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
			w.states.markDirty(aPredictor)
			w.reconcile(aPredictor)
			want := []string{"Loading", "Loaded"}
			if len(w.patches) != len(want) {
				t.Fatalf("patches %q, want %d", w.patches, len(want))
			}
			for i, state := range want {
				if !strings.Contains(w.patches[i], `"activeModelState":"`+state+`"`) {
					t.Errorf("patch %s, want %s", w.patches[i], state)
				}
			}
			w.expectIdle(aPredictor)
		})
	}
}

// While the cache lacks the last status, an update would only conflict.
func TestModelWaitsForCacheWithLastStatus(t *testing.T) {
	w := newTestEnv(t, predictor())
	source := w.sources[modelmesh.SourcePredictor].(*predictorSource)
	newer := predictor()
	newer.ResourceVersion = "100000"
	source.writes.Record(t.Context(), w.client, newer, newer)
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	if again := w.reconcile(aPredictor); again != reconciler.StaleCacheRetry || len(w.patches)+w.mesh.calls() != 0 {
		t.Errorf("again in %s, patches %q, %d calls", again, w.patches, w.mesh.calls())
	}
	w.clock.SetTime(now.Add(time.Minute))
	if w.reconcile(aPredictor); len(w.patches) != 1 {
		t.Errorf("patches %q", w.patches)
	}
}

func TestModelIsPendingWithoutPods(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.fault = meshclient.ErrNoAddress
	if again := w.reconcile(aPredictor); again != 0 {
		t.Errorf("requeue after %s, but new addresses trigger the next reconcile", again)
	}
	want := v1alpha1.PredictorStatus{
		TransitionStatus: "UpToDate", ActiveModelState: "Pending", LastFailureInfo: failure("RuntimeUnhealthy", "Waiting for runtime Pod to become available", modelID(t, w), "", nil),
	}
	if diff := cmp.Diff(want, w.status()); diff != "" { // as in the recordings
		t.Error(diff)
	}
	if !strings.Contains(w.patches[0], `"resourceVersion":"999"`) || !strings.Contains(w.patches[0], `"grpcEndpoint":""`) || !strings.Contains(w.patches[0], `"time":null`) {
		t.Errorf("patch %s", w.patches[0])
	}
	w.expectIdle(aPredictor)
	w.oneEvent("Normal RuntimeUnhealthy")

	w.mesh.fault, w.mesh.response = nil, statusOf(modelID(t, w), concrete(loaded))
	if keys := w.states.markPodsChanged("ns"); !slices.Equal(keys, []types.NamespacedName{aPredictor}) {
		t.Errorf("enqueued %v, want %v", keys, []types.NamespacedName{aPredictor})
	}
	w.reconcile(aPredictor)
	if s := w.status(); !s.Available || s.LastFailureInfo != nil {
		t.Errorf("unexpected status: %+v", s)
	}

	// All pods are deleted: the model is no longer available.
	w.mesh.fault = meshclient.ErrNoAddress
	w.states.markPodsChanged("ns")
	w.reconcile(aPredictor)
	if s := w.status(); s.Available || s.ActiveModelState != v1alpha1.Loaded || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy {
		t.Errorf("unexpected status: %+v", s)
	}
}

func TestFailedCallKeepsStatusAndLoadOrder(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.fault = status.Error(codes.Unavailable, "connection refused")
	again := w.reconcile(aPredictor)
	if again < minBackoff || len(w.patches) != 1 { // the status that the model is not ready
		t.Errorf("again in %s, %d writes", again, len(w.patches))
	}
	w.expectIdle(aPredictor)
	w.mesh.fault, w.mesh.response = nil, statusOf(modelID(t, w), concrete(loading))
	w.clock.SetTime(now.Add(again))
	w.reconcile(aPredictor)
	if got := w.mesh.loads(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("load orders %v, want %v", got, []bool{true, true})
	}
	w.mesh.fault = status.Error(codes.Internal, "broken")
	w.states.markDirty(aPredictor)
	if again := w.reconcile(aPredictor); again == 0 || w.status().ActiveModelState != v1alpha1.Loading {
		t.Errorf("again in %s, %+v", again, w.status())
	}
}

func TestEventDuringCallMarksModelDirty(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loading))
	w.mesh.meanwhile = func() { w.states.markDirty(aPredictor) }
	w.reconcile(aPredictor)
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	w.reconcile(aPredictor)
	if s := w.status(); s.ActiveModelState != v1alpha1.Loaded {
		t.Errorf("the event during the call was lost: %+v", s)
	}
	w.mesh.response = statusOf(modelID(t, w), concrete(loadFailed, "x"))
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor) // Loaded before, so nothing is ordered
	w.states.markDirty(aPredictor)
	w.mesh.meanwhile = func() { w.states.markPodsChanged("ns") } // pods start during the call
	w.reconcile(aPredictor)
	w.reconcile(aPredictor)
	if got := w.mesh.loads(); !got[len(got)-1] {
		t.Errorf("load orders %v, want a load on the new pods", got)
	}
}

func TestChangedSpecReplacesModel(t *testing.T) {
	w := newTestEnv(t, predictor())
	old := modelID(t, w)
	w.mesh.response = statusOf(old, with(concrete(loaded), copyAt("a", loaded, 1)))
	w.reconcile(aPredictor)
	path := "sklearn/another"
	w.change(func(p *v1alpha1.Predictor) { p.Spec.Storage.Path = &path })
	fresh := modelID(t, w)
	info := replacedModel(transitioning, with(concrete(loaded), copyAt("a", loaded, 1)), with(concrete(loading), copyAt("a", loading, 1)))
	info.ActiveModelId, info.TargetModelId = old, fresh
	w.mesh.response = info
	if again := w.reconcile(aPredictor); again == 0 {
		t.Error("want a requeue")
	}
	if s := w.status(); s.TransitionStatus != v1alpha1.InProgress || s.TargetModelState != v1alpha1.Loading || !s.Available || s.TotalCopies != 2 || s.ActiveModelState != v1alpha1.Loaded {
		t.Errorf("unexpected status: %+v", s)
	}
	if got := w.mesh.sets[1]; got.GetTargetModelId() != fresh || got.GetVModelId() != "digits" {
		t.Errorf("registered as %v, want vmodel digits with the new model ID", got)
	}
	w.newEvents()
	w.mesh.response = statusOf(fresh, concrete(loaded))
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if s := w.status(); s.TransitionStatus != v1alpha1.UpToDate || s.TargetModelState != "" {
		t.Errorf("unexpected status: %+v", s)
	}
	w.oneEvent("Normal ModelReplaced")
	w.expectIdle(aPredictor)
}

// The status of the previous model is still updated.
func TestInvalidSpecKeepsPreviousModel(t *testing.T) {
	w := newTestEnv(t, predictor())
	old := modelID(t, w)
	w.mesh.response = statusOf(old, with(concrete(loaded), copyAt("a", loaded, 1)))
	w.reconcile(aPredictor)
	w.newEvents()
	w.change(func(p *v1alpha1.Predictor) { p.Spec.Path = "second/path" })
	w.reconcile(aPredictor)
	s := w.status()
	want := failure("InvalidPredictorSpec", "Only one of spec.path and spec.storage.path can be specified: remove spec.path", modelID(t, w), "", nil)
	if s.TransitionStatus != v1alpha1.InvalidSpec || !s.Available || s.ActiveModelState != v1alpha1.Loaded || !cmp.Equal(s.LastFailureInfo, want) {
		t.Errorf("got status %+v, want InvalidSpec while the previous model serves", s)
	}
	if len(w.mesh.sets) != 1 || len(w.mesh.gets) != 1 || w.mesh.gets[0].GetOwner() != "ksp" {
		t.Errorf("sets %v, gets %v", w.mesh.sets, w.mesh.gets)
	}
	w.oneEvent("Warning InvalidPredictorSpec Only one of")
	w.expectIdle(aPredictor)
	w.mesh.response = statusOf(old, concrete(notLoaded))
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if s := w.status(); s.ActiveModelState != v1alpha1.Standby || s.TransitionStatus != v1alpha1.InvalidSpec || s.LastFailureInfo == nil {
		t.Errorf("unexpected status: %+v", s)
	}
	w.mesh.fault = meshclient.ErrNoAddress
	w.states.markPodsChanged("ns")
	w.change(func(p *v1alpha1.Predictor) { p.Spec.Path = "" })
	w.reconcile(aPredictor)
	if s := w.status(); s.TransitionStatus != v1alpha1.InProgress || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy {
		t.Errorf("the spec was corrected, but the status is %+v", s)
	}
}

func TestInvalidNewModelIsNotRegistered(t *testing.T) {
	for name, arrange := range map[string]func(*testEnv){
		"without pods":           func(w *testEnv) { w.mesh.fault = meshclient.ErrNoAddress },
		"without answer":         func(w *testEnv) { w.mesh.fault = status.Error(codes.Unavailable, "refused") },
		"without client":         func(w *testEnv) { w.connected = false },
		"not served":             func(w *testEnv) { w.connected, w.served = false, false },
		"vmodel without a model": func(w *testEnv) { w.mesh.response = &meshpb.VModelStatusInfo{ActiveModelStatus: concrete(notFound)} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, predictor(func(p *v1alpha1.Predictor) { p.Spec.Path = "x" }))
			arrange(w)
			w.reconcile(aPredictor)
			s := w.status()
			if s.TransitionStatus != v1alpha1.InvalidSpec || s.Available || s.ActiveModelState != v1alpha1.Pending || s.LastFailureInfo.Reason != v1alpha1.InvalidPredictorSpec {
				t.Errorf("got status %+v, want InvalidSpec and no available model", s)
			}
			if len(w.mesh.sets) != 0 {
				t.Error("an invalid model was registered in the mesh")
			}
		})
	}
}

func TestModelIDConflictIsReported(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.clash = alreadyExists()
	w.mesh.response = &meshpb.VModelStatusInfo{ActiveModelStatus: concrete(notFound)} // no model of the operator
	if again := w.reconcile(aPredictor); again == 0 {
		t.Error("want a requeue for another attempt")
	}
	s := w.status()
	if s.LastFailureInfo.Message != "Predictor already exists with the same name from a different source" || s.TransitionStatus != v1alpha1.InvalidSpec || s.Available {
		t.Errorf("got status %+v, want the conflict of model IDs", s)
	}
	w.expectIdle(aPredictor)
	w.mesh.response = statusOf("x", concrete(loaded))
	w.mesh.response.Owner = "isvc"
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if got := w.status().LastFailureInfo.Message; got != messageIDConflict {
		t.Error(got)
	}
	w.mesh.response.Owner = "ksp"
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if s := w.status(); s.LastFailureInfo.Message != messageSpecMismatch || s.ActiveModelState != v1alpha1.Loaded || !s.Available {
		t.Errorf("unexpected status: %+v", s)
	}
	w.mesh.fault = meshclient.ErrNoAddress
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if got := w.status().LastFailureInfo.Reason; got != v1alpha1.RuntimeUnhealthy {
		t.Error(got)
	}
	w.mesh.fault = status.Error(codes.DeadlineExceeded, "too slow")
	w.states.markDirty(aPredictor)
	if again := w.reconcile(aPredictor); again == 0 {
		t.Error("want a requeue for another attempt")
	}
}

func TestModelInDisabledNamespaceIsReported(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.connected = false
	if again := w.reconcile(aPredictor); again != 0 || len(w.patches) != 1 {
		t.Errorf("requeue after %s, writes %v; want one write and no requeue", again, w.patches)
	}
	w.served = false
	if again := w.reconcile(aPredictor); again != 0 {
		t.Errorf("requeue after %s, but the label triggers the next reconcile", again)
	}
	if s := w.status(); s.LastFailureInfo == nil || s.LastFailureInfo.Message != messageNamespaceDisabled || s.Available {
		t.Errorf("unexpected status: %+v", s)
	}
	w.expectIdle(aPredictor)
	w.connected, w.served, w.mesh.response = true, true, statusOf(modelID(t, w), concrete(loaded))
	w.states.markPodsChanged("ns")
	w.reconcile(aPredictor)
	if s := w.status(); !s.Available || s.LastFailureInfo != nil {
		t.Errorf("unexpected status: %+v", s)
	}
}

func TestDeletedPredictorIsRemovedFromMesh(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	w.reconcile(aPredictor)
	if err := w.client.Delete(t.Context(), predictor()); err != nil {
		t.Fatal(err)
	}
	w.mesh.fault = meshclient.ErrNoAddress
	if again := w.reconcile(aPredictor); again != 0 {
		t.Errorf("unexpected requeue after %s", again)
	}
	w.mesh.fault = status.Error(codes.Unavailable, "refused")
	w.states.markPodsChanged("ns")
	again := w.reconcile(aPredictor)
	if again < minBackoff {
		t.Errorf("unexpected requeue after %s", again)
	}
	w.mesh.fault = nil
	w.clock.SetTime(now.Add(again))
	if again := w.reconcile(aPredictor); again != 0 {
		t.Errorf("unexpected requeue after %s", again)
	}
	if got := w.mesh.deletes; len(got) != 3 || got[0].GetOwner() != "ksp" || got[0].GetVModelId() != "digits" {
		t.Errorf("got unregistered models %v, want 3, the first vmodel digits of owner ksp", got)
	}
	if _, known := w.states.get(aPredictor); known {
		t.Error("the state of the deleted Predictor was not deleted")
	}
	w.expectIdle(aPredictor)
}

// A model of the mesh without a resource was left behind while the manager was down.
func TestModelWithoutResourceIsRemovedFromMesh(t *testing.T) {
	for name, tc := range map[string]struct {
		key   types.NamespacedName
		owner string
	}{"of a Predictor": {aPredictor, "ksp"}, "of an InferenceService": {aService, "isvc"}} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.reconcile(tc.key)
			if w.mesh.calls() != 0 {
				t.Error("the mesh was called for a model that it does not have")
			}
			w.states.markDirty(tc.key)
			w.reconcile(tc.key)
			if got := w.mesh.deletes; len(got) != 1 || got[0].GetOwner() != tc.owner {
				t.Errorf("got unregistered models %v, want one of the expected owner", got)
			}
			w.expectIdle(tc.key)
		})
	}
	w := newTestEnv(t)
	w.connected = false
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	if _, known := w.states.get(aPredictor); !known {
		t.Error("the state was deleted before the namespace has a client")
	}
	w.served = false
	w.reconcile(aPredictor)
	if _, known := w.states.get(aPredictor); known || w.mesh.calls() != 0 {
		t.Error("in a disabled namespace, want no state and no call of the mesh")
	}
}

func TestModelIsKeptWhileAPIOfSourceIsUnavailable(t *testing.T) {
	w := newTestEnv(t)
	w.kinds = capability.NewSet()
	w.states.markDirty(aService)
	w.reconcile(aService)
	if w.mesh.calls() != 0 {
		t.Error("the model was removed before the InferenceServices could be read")
	}
}

func TestTerminatingModelIsNotLoaded(t *testing.T) {
	w := newTestEnv(t, predictor(func(p *v1alpha1.Predictor) {
		p.Finalizers, p.DeletionTimestamp = []string{"example.com/wait"}, &metav1.Time{Time: now}
	}))
	w.mesh.response = statusOf(modelID(t, w), concrete(notLoaded))
	w.reconcile(aPredictor)
	if got := w.mesh.loads(); !slices.Equal(got, []bool{false}) {
		t.Errorf("load orders %v, want %v", got, []bool{false})
	}
}

// The wait ends after runtimeGracePeriod.
func TestModelWaitsUntilMeshKnowsRuntime(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.supports = true
	w.mesh.response = statusOf(modelID(t, w), concrete(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	if again := w.reconcile(aPredictor); again == 0 || w.status().ActiveModelState != v1alpha1.Loading {
		t.Errorf("again in %s, %+v", again, w.status())
	}
	w.clock.SetTime(now.Add(runtimeGracePeriod))
	w.reconcile(aPredictor)
	if s := w.status(); s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Reason != v1alpha1.NoSupportingRuntime {
		t.Errorf("unexpected status: %+v", s)
	}
	w.expectIdle(aPredictor)
	if len(w.patches) != 2 {
		t.Errorf("%d writes for two states", len(w.patches))
	}

	w = newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	w.reconcile(aPredictor)
	if s := w.status(); s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Message != messageUnsupported || s.LastFailureInfo.Location != "" || s.LastFailureInfo.Time == nil {
		t.Errorf("no runtime supports the model, but the status is %+v", s)
	}
}

// The mesh is not called for it.
func TestChangedStatusIsRestored(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	w.reconcile(aPredictor)
	p := predictor()
	if err := w.client.Get(t.Context(), inCluster, p); err != nil {
		t.Fatal(err)
	}
	p.Status = v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.FailedToLoad, TransitionStatus: v1alpha1.InvalidSpec}
	if err := w.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	calls := w.mesh.calls()
	w.reconcile(aPredictor)
	if s := w.status(); s.ActiveModelState != v1alpha1.Loaded || s.TransitionStatus != v1alpha1.UpToDate || w.mesh.calls() != calls {
		t.Errorf("%+v after %d more calls", s, w.mesh.calls()-calls)
	}
}

func TestFailedStatusWriteIsRetried(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	group := schema.GroupResource{Resource: "predictors"}
	w.patchFault = apierrors.NewConflict(group, "digits", errors.New("changed"))
	if again := w.reconcile(aPredictor); again != reconciler.ConflictRetry || len(w.patches) != 1 {
		t.Errorf("again in %s after %d writes", again, len(w.patches))
	}
	w.patchFault = apierrors.NewInternalError(errors.New("broken"))
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: aPredictor}); err == nil {
		t.Error("want the error of the status update returned")
	}
	if len(w.newEvents()) != 0 {
		t.Error("an Event was emitted for a status that was not written")
	}
	w.patchFault = nil
	w.reconcile(aPredictor)
	if w.mesh.calls() != 1 || !w.status().Available {
		t.Errorf("%d calls, %+v", w.mesh.calls(), w.status())
	}
}

func TestReconcileReturnsReadErrors(t *testing.T) {
	w := newTestEnv(t, predictor())
	broken := errors.New("broken")
	w.enabled = func(_ context.Context, _ string) (bool, error) { return false, broken }
	w.connected = false
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: aPredictor}); !errors.Is(err, broken) {
		t.Errorf("got error %v, want the read error", err)
	}
	w = newTestEnv(t, predictor())
	w.supported = func(context.Context, string, string) (bool, error) { return false, broken }
	w.mesh.response = statusOf(modelID(t, w), concrete(loadFailed, noInstancePrefix+"mt:sklearn: [_no_runtime]"))
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: aPredictor}); !errors.Is(err, broken) {
		t.Errorf("got error %v, want the read error", err)
	}
	if e, _ := w.states.get(aPredictor); !e.dirty {
		t.Error("the entry is not dirty, so the notification was lost")
	}
}

// [modelmesh-71]
func TestIgnoredFieldsAreReportedOnce(t *testing.T) {
	gpu, account := v1alpha1.GPURequest("required"), "robot"
	w := newTestEnv(t, predictor(func(p *v1alpha1.Predictor) { p.Spec.GPU, p.Spec.ServiceAccountName = &gpu, &account }))
	w.mesh.response = statusOf(modelID(t, w), concrete(loading))
	w.reconcile(aPredictor)
	got := w.newEvents()
	if len(got) != 2 || !strings.HasPrefix(got[0], "Warning FieldIgnored spec.gpu") || !strings.HasPrefix(got[1], "Warning FieldIgnored spec.serviceAccountName") {
		t.Errorf("got events %q, want one each for spec.gpu and spec.serviceAccountName", got)
	}
	w.mesh.response = statusOf(modelID(t, w), concrete(loaded))
	w.states.markDirty(aPredictor)
	w.reconcile(aPredictor)
	w.oneEvent("Normal ModelLoaded")
}

// State of the deleted resource of the same name is not used.
func TestRecreatedModelIsLoaded(t *testing.T) {
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf(modelID(t, w), concrete(loading))
	w.reconcile(aPredictor)
	if err := w.client.Delete(t.Context(), predictor()); err != nil {
		t.Fatal(err)
	}
	w.mesh.meanwhile = func() { w.states.markDirty(aPredictor) } // the mesh deletes its key in etcd
	w.reconcile(aPredictor)
	if err := w.client.Create(t.Context(), predictor(func(p *v1alpha1.Predictor) { p.UID = "another" })); err != nil {
		t.Fatal(err)
	}
	w.reconcile(aPredictor)
	if got := w.mesh.loads(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("load orders %v, want %v", got, []bool{true, true})
	}
}
