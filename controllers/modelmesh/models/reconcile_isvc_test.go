package models

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
)

const serviceID = "digits__isvc-6b2eb0b8bf"

func condition(s *v1beta1.InferenceService, name string) v1beta1.Condition {
	for _, c := range s.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return v1beta1.Condition{}
}

// [modelmesh-89]
func TestAnInferenceServiceBecomesReady(t *testing.T) {
	for name, spec := range map[string]string{
		"model":     aModel,
		"framework": `{sklearn: {storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, service(t, spec))
			w.mesh.response = statusOf(serviceID, concrete(loading))
			w.reconcile(aService)
			w.mesh.response = statusOf(serviceID, with(concrete(loaded), copyAt("a", loaded, 1)))
			w.states.markDirty(aService)
			if again := w.reconcile(aService); again != 0 {
				t.Errorf("again in %s", again)
			}
			s := w.service()
			if condition(s, "Ready").Status != corev1.ConditionTrue || s.Status.URL != grpcAddress || s.Status.Components["predictor"].RestURL != restAddress {
				t.Errorf("unexpected Status: %+v", s.Status)
			}
			if got := w.mesh.sets[0]; got.GetOwner() != "isvc" || got.GetTargetModelId() != serviceID || got.GetVModelId() != "digits" || got.GetModelInfo().GetType() != "mt:sklearn" {
				t.Errorf("registered as %v, want owner isvc with vmodel digits", got)
			}
			w.expectIdle(aService)
			w.oneEvent("Normal ModelLoaded")
		})
	}
}

// kserve's client looks at a status only if it names the generation that it is about.
func TestTheStatusOfAnInferenceServiceNamesItsGeneration(t *testing.T) {
	s := service(t, aModel)
	s.Generation = 3
	w := newTestEnv(t, s)
	w.mesh.response = statusOf(serviceID, concrete(loading))
	w.reconcile(aService)
	if got := w.service().Status.ObservedGeneration; got != 3 {
		t.Errorf("observedGeneration %d, want %d", got, 3)
	}
	w.expectIdle(aService)
}

// As in the recording: a conflict with an unknown model reports only the failure, and the transition stays open.
func TestAnInferenceServiceWithoutPods(t *testing.T) {
	w := newTestEnv(t, service(t, aModel))
	w.mesh.fault = meshclient.ErrNoAddress
	w.reconcile(aService)
	m := w.service().Status.ModelStatus
	if m.TransitionStatus != "" || m.States.ActiveModelState != v1alpha1.Pending || *m.Copies != (v1beta1.ModelCopies{}) ||
		*m.LastFailureInfo != (v1beta1.FailureInfo{Reason: "RuntimeUnhealthy", Message: messageNoPods, ModelRevisionName: serviceID}) {
		t.Errorf("got model status %+v, want Pending with RuntimeUnhealthy and no copies", m)
	}
	if c := condition(w.service(), "PredictorReady"); c.Status != corev1.ConditionFalse || c.Reason != "RuntimeUnhealthy" || c.Message != messageNoPods {
		t.Errorf("got condition %+v, want PredictorReady False with RuntimeUnhealthy", c)
	}
	w.expectIdle(aService)
}

// A message of a runtime that exceeds the size of an object does not prevent the status update.
func TestLongFailures(t *testing.T) {
	w := newTestEnv(t, service(t, aModel))
	w.mesh.response = statusOf(serviceID, with(concrete(loadFailed, strings.Repeat("ä", 1<<20)), copyAt("a", loadFailed, at(0))))
	w.reconcile(aService)
	s := w.service()
	for _, text := range []string{s.Status.ModelStatus.LastFailureInfo.Message, condition(s, "Ready").Message, condition(s, "PredictorReady").Message} {
		if len(text) > maxMessage || len(text) < maxMessage-4 || !utf8.ValidString(text) {
			t.Errorf("%d bytes", len(text))
		}
	}
	w.expectIdle(aService)
	w.mesh.response = statusOf(serviceID, concrete(loadFailed, noInstancePrefix+"mt:"+strings.Repeat("a", maxMessage)+": [_no_runtime]"))
	w.states.markDirty(aService)
	w.reconcile(aService)
	if got := w.service().Status.ModelStatus.LastFailureInfo; got.Reason != "NoSupportingRuntime" || got.Message != messageUnsupported {
		t.Errorf("%s: the end of the text is lost before it is read", got.Reason)
	}
}

// The failure of a load is written once: its time is kept in seconds.
func TestAFailedInferenceServiceIsWrittenOnce(t *testing.T) {
	w := newTestEnv(t, service(t, aModel))
	w.mesh.response = statusOf(serviceID, with(concrete(loadFailed, "broken"), copyAt("a", loadFailed, at(0))))
	w.reconcile(aService)
	before := condition(w.service(), "Ready")
	for range 5 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.states.markDirty(aService)
		w.reconcile(aService)
	}
	if len(w.patches) != 1 {
		t.Errorf("%d writes: %q", len(w.patches), w.patches)
	}
	if after := condition(w.service(), "Ready"); after != before || after.Reason != "ModelLoadFailed" || after.Message != "broken" {
		t.Errorf("%+v became %+v", before, after)
	}
	if f := w.service().Status.ModelStatus.LastFailureInfo; !f.Time.Equal(secondsAfter(0)) || f.Location != "a" {
		t.Errorf("got failure %+v, want the time and location of the first report", f)
	}
}

// The patch contains only fields of the operator.
func TestPatchesHaveOurFieldsOnly(t *testing.T) {
	s := service(t, aModel)
	s.Status.ObservedGeneration, s.Status.DeploymentMode = 7, "ModelMesh"
	s.Status.Components = map[string]v1beta1.ComponentStatus{"transformer": {URL: "http://t"}}
	s.Status.URL = "http://t.example.com"
	w := newTestEnv(t, s)
	w.mesh.response = statusOf(serviceID, concrete(loaded))
	w.reconcile(aService)
	for _, foreign := range []string{"transformer", "observedGeneration", "deploymentMode", `"url":"http`, "spec"} {
		if strings.Contains(w.patches[0], foreign) {
			t.Errorf("%s is in the patch %s", foreign, w.patches[0])
		}
	}
	if got := w.service().Status; got.URL != "http://t.example.com" || got.Components["transformer"].URL != "http://t" || got.ObservedGeneration != 7 {
		t.Errorf("got status %+v, want the fields of other controllers unchanged", got)
	}
}

// An InferenceService that cannot be converted reports the error, and keeps serving its model.
func TestConversionErrors(t *testing.T) {
	w := newTestEnv(t, service(t, `{model: {modelFormat: {name: a}, storageUri: "hdfs://b/p"}}`))
	w.mesh.fault = meshclient.ErrNoAddress
	w.reconcile(aService)
	s := w.service()
	c, m := condition(s, "PredictorReady"), s.Status.ModelStatus
	if c.Status != corev1.ConditionFalse || c.Reason != "InvalidPredictorSpec" || !strings.Contains(c.Message, "unsupported storageUri scheme") {
		t.Errorf("got condition %+v, want PredictorReady False because of the storageUri", c)
	}
	if m.TransitionStatus != v1alpha1.InvalidSpec || m.LastFailureInfo.ModelRevisionName != "" {
		t.Errorf("got model status %+v, want InvalidSpec without a model name", m)
	}
	w.oneEvent("Warning InvalidPredictorSpec")
	w.expectIdle(aService)
	s.Spec.Predictor.Model.StorageURI = new("ftp://b/p")
	if err := w.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile(aService)
	w.oneEvent("Warning InvalidPredictorSpec")

	w.mesh.fault, w.mesh.response = nil, statusOf("digits__isvc-0123456789", concrete(loaded))
	w.states.markPodsChanged("ns")
	w.reconcile(aService)
	if c := condition(w.service(), "Ready"); c.Status != corev1.ConditionTrue || len(w.mesh.sets) != 0 {
		t.Errorf("the model of before answers: %+v", c)
	}
}

// Other InferenceServices cost nothing, however often KServe changes them; one that leaves ModelMesh is unregistered.
func TestForeignInferenceServices(t *testing.T) {
	s := service(t, aModel)
	s.Annotations = nil
	w := newTestEnv(t, s)
	w.connected = false
	for range 3 {
		if again := w.reconcile(aService); again != 0 {
			t.Errorf("again in %s", again)
		}
	}
	if w.mesh.calls() != 0 || len(w.patches) != 0 || len(w.states.entries) != 0 {
		t.Errorf("%d calls, %d writes, %d entries", w.mesh.calls(), len(w.patches), len(w.states.entries))
	}
	w = newTestEnv(t, service(t, aModel))
	w.mesh.response = statusOf(serviceID, concrete(loaded))
	w.reconcile(aService)
	s = w.service()
	s.Annotations[v1beta1.AnnotationDeploymentMode] = "RawDeployment"
	if err := w.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile(aService)
	if got := w.mesh.deletes; len(got) != 1 || got[0].GetOwner() != "isvc" {
		t.Errorf("got unregistered models %v, want one of owner isvc", got)
	}
	w.expectIdle(aService)
}

// [UP-F6] The fields of an InferenceService that have no effect are reported with its registration, and not again.
func TestIgnoredFieldsOfAnInferenceService(t *testing.T) {
	s := service(t, aModel)
	s.Ignored = []string{"spec.predictor.logger", "spec.predictor.minReplicas"}
	w := newTestEnv(t)
	before := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending}
	after := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading}
	w.recordEvents(&resourceModel{object: s, status: before}, after)
	w.oneEvent("Warning FieldIgnored no effect on a model of ModelMesh: remove, or set in its runtime: spec.predictor.logger, spec.predictor.minReplicas")
	w.recordEvents(&resourceModel{object: s, status: after}, after)
	w.recordEvents(&resourceModel{object: service(t, aModel), status: before}, after)
	if got := w.newEvents(); len(got) > 0 {
		t.Errorf("got events %q, want none", got)
	}
}
