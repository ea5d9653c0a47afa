package models

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
)

// Each file of testdata/recordings contains a resource and the status that the legacy controller wrote when no pod of the mesh was
// ready. Fields that differ on purpose are not compared: conditions now report the cause.
func TestRecordedStatusesMatch(t *testing.T) {
	files, err := filepath.Glob("testdata/recordings/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("recordings %v, error %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, status, _ := bytes.Cut(data, []byte("---\n"))
			object, source := decodeRecording(t, input)
			env := newTestEnv(t, object)
			env.mesh.err = meshclient.ErrNoAddress
			env.reconcile(modelKey(source, client.ObjectKeyFromObject(object)))
			if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			var want struct{ Status map[string]any }
			if err := yaml.Unmarshal(status, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Status, comparableStatus(t, object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// decodeRecording returns the resource of a recording and its source.
func decodeRecording(t *testing.T, data []byte) (client.Object, string) {
	t.Helper()
	object, source := client.Object(&v1beta1.InferenceService{}), "isvc"
	if bytes.Contains(data, []byte("kind: Predictor")) {
		object, source = newPredictor(func(p *v1alpha1.Predictor) { p.Spec = v1alpha1.PredictorSpec{} }), "ksp"
	}
	if err := yaml.Unmarshal(data, object); err != nil {
		t.Fatal(err)
	}
	return object, source
}

// comparableStatus returns the status without the fields that differ from the recordings.
func comparableStatus(t *testing.T, object client.Object) map[string]any {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct{ Status map[string]any }
	if err := yaml.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	switch o := object.(type) {
	case *v1alpha1.Predictor: // empty fields are omitted in YAML
		decoded.Status["grpcEndpoint"], decoded.Status["httpEndpoint"] = o.Status.GRPCEndpoint, o.Status.HTTPEndpoint
		delete(decoded.Status, "conditions") // the legacy controller set none; see TestKstatusOfConditions
		delete(decoded.Status, "observedGeneration")
	case *v1beta1.InferenceService: // a default of the CRD, which the fake client does not set
		states, _ := decoded.Status["modelStatus"].(map[string]any)["states"].(map[string]any)
		states["targetModelState"] = string(o.Status.ModelStatus.States.TargetModelState)
	}
	conditions, _ := decoded.Status["conditions"].([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["reason"] == "" || m["message"] == "" {
			t.Errorf("condition %v has no reason or message", m)
		}
		delete(m, "reason")
		delete(m, "message")
		m["lastTransitionTime"] = "<time>"
	}
	return decoded.Status
}
