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

const inferenceServiceModelID = "digits__isvc-6b2eb0b8bf"

func getCondition(s *v1beta1.InferenceService, conditionType string) v1beta1.Condition {
	for _, c := range s.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return v1beta1.Condition{}
}

// [modelmesh-89] An InferenceService is ready when its model is loaded.
func TestInferenceServiceBecomesReady(t *testing.T) {
	for name, spec := range map[string]string{
		"model":     sklearnModel,
		"framework": `{sklearn: {storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, newInferenceService(t, spec))
			env.mesh.response = responseFor(inferenceServiceModelID, modelStatus(loading))
			env.reconcile(inferenceServiceKey)
			env.mesh.response = responseFor(inferenceServiceModelID, withCopies(modelStatus(loaded), newCopy("a", loaded, 1)))
			env.states.markDirty(inferenceServiceKey)
			if requeueAfter := env.reconcile(inferenceServiceKey); requeueAfter != 0 {
				t.Errorf("requeue after %s, want none", requeueAfter)
			}
			s := env.inferenceService()
			if getCondition(s, "Ready").Status != corev1.ConditionTrue || s.Status.URL != grpcAddress || s.Status.Components["predictor"].RestURL != restAddress {
				t.Errorf("status %+v, want Ready with the addresses", s.Status)
			}
			if got := env.mesh.setRequests[0]; got.GetOwner() != "isvc" || got.GetTargetModelId() != inferenceServiceModelID || got.GetVModelId() != "digits" || got.GetModelInfo().GetType() != "mt:sklearn" {
				t.Errorf("request %v, want owner isvc and vmodel digits", got)
			}
			env.expectSteadyState(inferenceServiceKey)
			env.expectEvent("Normal ModelLoaded")
		})
	}
}

// The status has the generation of the spec: KServe's client ignores a status of another generation.
func TestInferenceServiceObservedGeneration(t *testing.T) {
	s := newInferenceService(t, sklearnModel)
	s.Generation = 3
	env := newTestEnv(t, s)
	env.mesh.response = responseFor(inferenceServiceModelID, modelStatus(loading))
	env.reconcile(inferenceServiceKey)
	if got := env.inferenceService().Status.ObservedGeneration; got != 3 {
		t.Errorf("observedGeneration %d, want %d", got, 3)
	}
	env.expectSteadyState(inferenceServiceKey)
}

// As in testdata/recordings, the status of a new InferenceService without pods has a failure and no transition status.
func TestInferenceServiceWithoutPods(t *testing.T) {
	env := newTestEnv(t, newInferenceService(t, sklearnModel))
	env.mesh.err = meshclient.ErrNoAddress
	env.reconcile(inferenceServiceKey)
	m := env.inferenceService().Status.ModelStatus
	if m.TransitionStatus != "" || m.States.ActiveModelState != v1alpha1.Pending || *m.Copies != (v1beta1.ModelCopies{}) ||
		*m.LastFailureInfo != (v1beta1.FailureInfo{Reason: "RuntimeUnhealthy", Message: messageNoPods, ModelRevisionName: inferenceServiceModelID}) {
		t.Errorf("model status %+v, want Pending with RuntimeUnhealthy and no copies", m)
	}
	if c := getCondition(env.inferenceService(), "PredictorReady"); c.Status != corev1.ConditionFalse || c.Reason != "RuntimeUnhealthy" || c.Message != messageNoPods {
		t.Errorf("condition %+v, want PredictorReady False with RuntimeUnhealthy", c)
	}
	env.expectSteadyState(inferenceServiceKey)
}

// A long message of a runtime is truncated, because the API server would reject the status with the whole message.
func TestLongFailureMessageIsTruncated(t *testing.T) {
	env := newTestEnv(t, newInferenceService(t, sklearnModel))
	env.mesh.response = responseFor(inferenceServiceModelID, withCopies(modelStatus(loadFailed, strings.Repeat("ä", 1<<20)), newCopy("a", loadFailed, unixMilliAfter(0))))
	env.reconcile(inferenceServiceKey)
	s := env.inferenceService()
	for _, message := range []string{s.Status.ModelStatus.LastFailureInfo.Message, getCondition(s, "Ready").Message, getCondition(s, "PredictorReady").Message} {
		if len(message) > maxMessageBytes || len(message) < maxMessageBytes-4 || !utf8.ValidString(message) {
			t.Errorf("message of %d bytes, want valid UTF-8 of about %d", len(message), maxMessageBytes)
		}
	}
	env.expectSteadyState(inferenceServiceKey)
	env.mesh.response = responseFor(inferenceServiceModelID, modelStatus(loadFailed, noInstancePrefix+"mt:"+strings.Repeat("a", maxMessageBytes)+": [_no_runtime]"))
	env.states.markDirty(inferenceServiceKey)
	env.reconcile(inferenceServiceKey)
	if got := env.inferenceService().Status.ModelStatus.LastFailureInfo; got.Reason != "NoSupportingRuntime" || got.Message != messageUnsupported {
		t.Errorf("reason %s, message %q, want NoSupportingRuntime from the end of the message", got.Reason, got.Message)
	}
}

// A load failure is written once: the time of the mesh is truncated to seconds, as the API stores it.
func TestLoadFailureOfInferenceServiceIsWrittenOnce(t *testing.T) {
	env := newTestEnv(t, newInferenceService(t, sklearnModel))
	env.mesh.response = responseFor(inferenceServiceModelID, withCopies(modelStatus(loadFailed, "broken"), newCopy("a", loadFailed, unixMilliAfter(0))))
	env.reconcile(inferenceServiceKey)
	before := getCondition(env.inferenceService(), "Ready")
	for range 5 {
		env.clock.SetTime(env.clock.Now().Add(time.Minute))
		env.states.markDirty(inferenceServiceKey)
		env.reconcile(inferenceServiceKey)
	}
	if len(env.patches) != 1 {
		t.Errorf("patches %q, want one", env.patches)
	}
	if after := getCondition(env.inferenceService(), "Ready"); after != before || after.Reason != "ModelLoadFailed" || after.Message != "broken" {
		t.Errorf("condition %+v, want %+v unchanged", after, before)
	}
	if f := env.inferenceService().Status.ModelStatus.LastFailureInfo; !f.Time.Equal(metaTimeAfter(0)) || f.Location != "a" {
		t.Errorf("failure %+v, want the time and location of the first report", f)
	}
}

// The patch contains no fields of other controllers.
func TestStatusPatchKeepsForeignFields(t *testing.T) {
	s := newInferenceService(t, sklearnModel)
	s.Status.ObservedGeneration, s.Status.DeploymentMode = 7, "ModelMesh"
	s.Status.Components = map[string]v1beta1.ComponentStatus{"transformer": {URL: "http://t"}}
	s.Status.URL = "http://t.example.com"
	env := newTestEnv(t, s)
	env.mesh.response = responseFor(inferenceServiceModelID, modelStatus(loaded))
	env.reconcile(inferenceServiceKey)
	for _, foreign := range []string{"transformer", "observedGeneration", "deploymentMode", `"url":"http`, "spec"} {
		if strings.Contains(env.patches[0], foreign) {
			t.Errorf("patch %s contains %s", env.patches[0], foreign)
		}
	}
	if got := env.inferenceService().Status; got.URL != "http://t.example.com" || got.Components["transformer"].URL != "http://t" || got.ObservedGeneration != 7 {
		t.Errorf("status %+v, want the fields of other controllers unchanged", got)
	}
}

// The status reports an InferenceService that cannot be converted. Its previous model remains available.
func TestInferenceServiceConversionErrors(t *testing.T) {
	env := newTestEnv(t, newInferenceService(t, `{model: {modelFormat: {name: a}, storageUri: "hdfs://b/p"}}`))
	env.mesh.err = meshclient.ErrNoAddress
	env.reconcile(inferenceServiceKey)
	s := env.inferenceService()
	c, m := getCondition(s, "PredictorReady"), s.Status.ModelStatus
	if c.Status != corev1.ConditionFalse || c.Reason != "InvalidPredictorSpec" || !strings.Contains(c.Message, "unsupported storageUri scheme") {
		t.Errorf("condition %+v, want PredictorReady False because of the storageUri", c)
	}
	if m.TransitionStatus != v1alpha1.InvalidSpec || m.LastFailureInfo.ModelRevisionName != "" {
		t.Errorf("model status %+v, want InvalidSpec without a model ID", m)
	}
	env.expectEvent("Warning InvalidPredictorSpec")
	env.expectSteadyState(inferenceServiceKey)
	s.Spec.Predictor.Model.StorageURI = new("ftp://b/p")
	if err := env.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	env.reconcile(inferenceServiceKey)
	env.expectEvent("Warning InvalidPredictorSpec")

	env.mesh.err, env.mesh.response = nil, responseFor("digits__isvc-0123456789", modelStatus(loaded))
	env.states.markPodsChanged("ns")
	env.reconcile(inferenceServiceKey)
	if c := getCondition(env.inferenceService(), "Ready"); c.Status != corev1.ConditionTrue || len(env.mesh.setRequests) != 0 {
		t.Errorf("condition %+v, want Ready with the previous model, and no registration", c)
	}
}

// An InferenceService of another mode is ignored. If it was in ModelMesh mode before, its model is deleted from the mesh.
func TestInferenceServiceOfAnotherMode(t *testing.T) {
	s := newInferenceService(t, sklearnModel)
	s.Annotations = nil
	env := newTestEnv(t, s)
	env.hasMeshClient = false
	for range 3 {
		if requeueAfter := env.reconcile(inferenceServiceKey); requeueAfter != 0 {
			t.Errorf("requeue after %s, want none", requeueAfter)
		}
	}
	if env.mesh.calls() != 0 || len(env.patches) != 0 || len(env.states.entries) != 0 {
		t.Errorf("%d calls, %d writes, %d states, want none", env.mesh.calls(), len(env.patches), len(env.states.entries))
	}
	env = newTestEnv(t, newInferenceService(t, sklearnModel))
	env.mesh.response = responseFor(inferenceServiceModelID, modelStatus(loaded))
	env.reconcile(inferenceServiceKey)
	s = env.inferenceService()
	s.Annotations[v1beta1.AnnotationDeploymentMode] = "RawDeployment"
	if err := env.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	env.reconcile(inferenceServiceKey)
	if got := env.mesh.deleteRequests; len(got) != 1 || got[0].GetOwner() != "isvc" {
		t.Errorf("delete requests %v, want one for owner isvc", got)
	}
	env.expectSteadyState(inferenceServiceKey)
}

// [UP-F6] Fields of an InferenceService that have no effect are reported once, when it is registered.
func TestIgnoredFieldsOfAnInferenceService(t *testing.T) {
	s := newInferenceService(t, sklearnModel)
	s.Ignored = []string{"spec.predictor.logger", "spec.predictor.minReplicas"}
	env := newTestEnv(t)
	pending := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending}
	loading := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loading}
	env.recordEvents(&resourceModel{object: s, status: pending}, loading)
	env.expectEvent("Warning FieldIgnored these fields have no effect on a model of ModelMesh; remove them, or set them in its runtime: spec.predictor.logger, spec.predictor.minReplicas")
	env.recordEvents(&resourceModel{object: s, status: loading}, loading)
	env.recordEvents(&resourceModel{object: newInferenceService(t, sklearnModel), status: pending}, loading)
	if got := env.takeEvents(); len(got) > 0 {
		t.Errorf("events %q, want none", got)
	}
}
