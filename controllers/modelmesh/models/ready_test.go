package models

import (
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// kstatus computes the expected status from the conditions of a Predictor of generation 3.
func TestKstatusOfConditions(t *testing.T) {
	withFailureInfo := func(reason v1alpha1.FailureReason, message string) func(*v1alpha1.PredictorStatus) {
		return func(s *v1alpha1.PredictorStatus) {
			s.LastFailureInfo = &v1alpha1.FailureInfo{Reason: reason, Message: message}
		}
	}
	withState := func(state v1alpha1.ModelState, available bool, transition v1alpha1.TransitionStatus) func(*v1alpha1.PredictorStatus) {
		return func(s *v1alpha1.PredictorStatus) {
			s.ActiveModelState, s.Available, s.TransitionStatus = state, available, transition
		}
	}
	for name, tc := range map[string]struct {
		changes   []func(*v1alpha1.PredictorStatus)
		available metav1.ConditionStatus
		reason    string // the reason of Ready
		want      kstatus.Status
	}{
		"new":                                 {nil, "False", "ModelPending", kstatus.InProgressStatus},
		"loading":                             {[]func(*v1alpha1.PredictorStatus){withState("Loading", false, "UpToDate")}, "False", "ModelLoading", kstatus.InProgressStatus},
		"loading on demand":                   {[]func(*v1alpha1.PredictorStatus){withState("Loading", true, "UpToDate")}, "True", "ModelLoading", kstatus.InProgressStatus},
		"loaded":                              {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "UpToDate")}, "True", "ModelLoaded", kstatus.CurrentStatus},
		"standby":                             {[]func(*v1alpha1.PredictorStatus){withState("Standby", true, "UpToDate")}, "True", "ModelStandby", kstatus.CurrentStatus},
		"no pod":                              {[]func(*v1alpha1.PredictorStatus){withFailureInfo("RuntimeUnhealthy", messageNoPods)}, "False", "RuntimeUnhealthy", kstatus.InProgressStatus},
		"no runtime":                          {[]func(*v1alpha1.PredictorStatus){withState("FailedToLoad", false, "UpToDate"), withFailureInfo("NoSupportingRuntime", messageUnsupported)}, "False", "NoSupportingRuntime", kstatus.FailedStatus},
		"load failed":                         {[]func(*v1alpha1.PredictorStatus){withState("FailedToLoad", false, "UpToDate"), withFailureInfo("ModelLoadFailed", "boom")}, "False", "ModelLoadFailed", kstatus.FailedStatus},
		"invalid spec":                        {[]func(*v1alpha1.PredictorStatus){withState("Pending", false, "InvalidSpec"), withFailureInfo("InvalidPredictorSpec", "both")}, "False", "InvalidPredictorSpec", kstatus.FailedStatus},
		"invalid spec, previous model serves": {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "InvalidSpec"), withFailureInfo("InvalidPredictorSpec", "both")}, "True", "InvalidPredictorSpec", kstatus.FailedStatus},
		"transition":                          {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "InProgress")}, "True", "InProgress", kstatus.InProgressStatus},
		"transition failed":                   {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "BlockedByFailedLoad"), withFailureInfo("ModelLoadFailed", "boom")}, "True", "ModelLoadFailed", kstatus.FailedStatus},
		"one copy failed":                     {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "UpToDate"), withFailureInfo("ModelLoadFailed", "boom")}, "True", "ModelLoaded", kstatus.CurrentStatus},
		"mesh unreachable":                    {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "UpToDate"), withFailureInfo("RuntimeUnhealthy", messageMeshUnreachable+"x")}, "True", "RuntimeUnhealthy", kstatus.InProgressStatus},
		"previous generation":                 {[]func(*v1alpha1.PredictorStatus){withState("Loaded", true, "UpToDate"), func(s *v1alpha1.PredictorStatus) { s.ObservedGeneration = 2 }}, "True", "InProgress", kstatus.InProgressStatus},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Predictor{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Predictor"}, ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 3}}
			p.Status = v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending, TransitionStatus: v1alpha1.UpToDate, ObservedGeneration: 3}
			for _, change := range tc.changes {
				change(&p.Status)
			}
			p.Status = withConditions(p.Status, p.Generation)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
			if err != nil {
				t.Fatal(err)
			}
			result, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
			if err != nil || result.Status != tc.want {
				t.Errorf("kstatus %+v, error %v, want %s", result, err, tc.want)
			}
			ready := meta.FindStatusCondition(p.Status.Conditions, "Ready")
			if ready == nil || ready.Reason != tc.reason || !meta.IsStatusConditionPresentAndEqual(p.Status.Conditions, "Available", tc.available) {
				t.Errorf("conditions %+v", p.Status.Conditions)
			}
		})
	}
}

// Conditions of an unchanged status keep their transition time.
func TestWithConditionsIsIdempotent(t *testing.T) {
	s := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.FailedToLoad, LastFailureInfo: &v1alpha1.FailureInfo{Reason: v1alpha1.ModelLoadFailed, Message: "boom"}}
	first := withConditions(s, 0)
	for i := range first.Conditions {
		first.Conditions[i].LastTransitionTime = metav1.NewTime(now)
	}
	second := withConditions(first, 0)
	for _, c := range second.Conditions {
		if !c.LastTransitionTime.Time.Equal(now) {
			t.Errorf("condition %s: transition time %s, want %s", c.Type, c.LastTransitionTime, now)
		}
	}
	if len(second.Conditions) != 3 {
		t.Errorf("conditions %+v", second.Conditions)
	}
}

// A missing reference is reported, and a model that serves requests is not ready without it.
func TestMissingReferences(t *testing.T) {
	env := newTestEnv(t, newPredictor())
	env.mesh.response = responseFor("x", modelStatus(loaded))
	env.missingReferences = []reference.Missing{{Reference: reference.Reference{Kind: reference.Secret, Name: "storage-config"}, Key: "localMinIO"}}
	conditions := func() []metav1.Condition {
		p := &v1alpha1.Predictor{}
		if err := env.client.Get(t.Context(), objectKey, p); err != nil {
			t.Fatal(err)
		}
		return p.Status.Conditions
	}
	env.reconcile(predictorKey)
	c := meta.FindStatusCondition(conditions(), "ReferencesReady")
	if c == nil || c.Message != "In namespace ns: Secret storage-config has no key localMinIO; add it" {
		t.Errorf("condition %+v", c)
	}
	if c := meta.FindStatusCondition(conditions(), "Ready"); c == nil || c.Status != metav1.ConditionFalse || c.Reason != reference.ReasonMissing {
		t.Errorf("condition %+v", c)
	}
	env.expectSteadyState(predictorKey)
	env.missingReferences, env.referencesUnknown = nil, true // as after a restart
	env.expectSteadyState(predictorKey)
	env.referencesUnknown = false
	env.reconcile(predictorKey)
	if got := conditions(); !meta.IsStatusConditionTrue(got, "Ready") || meta.FindStatusCondition(got, "ReferencesReady") != nil {
		t.Errorf("conditions %+v, want Ready and no ReferencesReady", got)
	}
}
