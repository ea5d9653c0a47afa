package models

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
)

// Each file of testdata/recordings contains a resource and the status that the legacy controller gave it while no pod of the mesh
// was ready. Fields that differ on purpose are removed before the comparison: conditions report the cause now.
func TestRecordedStatusesMatch(t *testing.T) {
	files, err := filepath.Glob("testdata/recordings/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("recordings %v, error %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, status, _ := bytes.Cut(text, []byte("---\n"))
			object, source := readRecording(t, input)
			w := newTestEnv(t, object)
			w.mesh.fault = meshclient.ErrNoAddress
			w.reconcile(types.NamespacedName{Namespace: source + "_" + object.GetNamespace(), Name: object.GetName()})
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			var want struct{ Status map[string]any }
			if err := yaml.Unmarshal(status, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Status, asRecorded(t, object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readRecording returns the resource as the API server stores it, and its source.
func readRecording(t *testing.T, text []byte) (client.Object, string) {
	t.Helper()
	object, source := client.Object(&v1beta1.InferenceService{}), "isvc"
	if bytes.Contains(text, []byte("kind: Predictor")) {
		object, source = predictor(func(p *v1alpha1.Predictor) { p.Spec = v1alpha1.PredictorSpec{} }), "ksp"
	}
	if err := yaml.Unmarshal(text, object); err != nil {
		t.Fatal(err)
	}
	return object, source
}

// asRecorded is the status in the form of the recordings.
func asRecorded(t *testing.T, object client.Object) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Status map[string]any }
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	switch o := object.(type) {
	case *v1alpha1.Predictor: // empty, but written; see TestNoPods
		out.Status["grpcEndpoint"], out.Status["httpEndpoint"] = o.Status.GRPCEndpoint, o.Status.HTTPEndpoint
		delete(out.Status, "conditions") // the legacy controller set none; see TestReadyFollowsKstatus
		delete(out.Status, "observedGeneration")
	case *v1beta1.InferenceService: // a default of the schema, which a fake client does not know
		states, _ := out.Status["modelStatus"].(map[string]any)["states"].(map[string]any)
		states["targetModelState"] = string(o.Status.ModelStatus.States.TargetModelState)
	}
	conditions, _ := out.Status["conditions"].([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["reason"] == "" || m["message"] == "" {
			t.Errorf("condition %v does not say why", m)
		}
		delete(m, "reason")
		delete(m, "message")
		m["lastTransitionTime"] = "<time>"
	}
	return out.Status
}
