package resources

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// platformInputs are the Inputs of each platform: bare serves no optional API, plain serves HTTPRoute and ServiceMonitor.
var platformInputs = map[string]Inputs{
	"bare":      withCommonInputs(Inputs{}),
	"plain":     withCommonInputs(Inputs{Served: capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor)}),
	"openshift": withCommonInputs(Inputs{OpenShift: true, Served: capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor, capability.ConsoleLink)}),
}

// withCommonInputs sets the inputs that are equal on all platforms.
func withCommonInputs(in Inputs) Inputs {
	in.Namespace = "opendatahub"
	in.Image = "quay.io/example/mlflow:v3"
	in.GatewayName = "data-science-gateway"
	in.GatewayNamespace = "openshift-ingress"
	in.ExternalURL = "https://gateway.apps.example.com"
	in.SectionTitle = "OpenShift Open Data Hub"
	in.Version = "3.14.0"
	return in
}

// goldenCase is an entry of testdata/cases.yaml.
type goldenCase struct {
	Name, Platform string
	Inputs         json.RawMessage
	// Unserved lists kinds that the platform does not serve in this case.
	Unserved []string
	Spec     mlflowv1.MLflowSpec
}

func goldenCases(t *testing.T) []goldenCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatalf("reading the cases: %v", err)
	}
	return cases
}

func (c goldenCase) inputs(t *testing.T) Inputs {
	t.Helper()
	in := platformInputs[c.Platform]
	if len(c.Inputs) > 0 {
		if err := json.Unmarshal(c.Inputs, &in); err != nil {
			t.Fatalf("reading the inputs: %v", err)
		}
	}
	served := slices.DeleteFunc(in.Served.UnsortedList(), func(k schema.GroupVersionKind) bool { return slices.Contains(c.Unserved, k.Kind) })
	in.Served = capability.NewSet(served...)
	return in
}

// TestGolden compares the objects of every case with a golden file. [mlflow-95] [mlflow-97]
func TestGolden(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			golden(t, c.Name, buildObjects(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { *s = c.Spec }), c.inputs(t)))
		})
	}
}

func golden(t *testing.T, name string, objects []*unstructured.Unstructured) {
	t.Helper()
	var got bytes.Buffer
	for _, o := range objects {
		document, err := yaml.Marshal(redactMigrationScript(o.DeepCopy().Object))
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(document)
	}
	framework.GoldenText(t, filepath.Join("testdata", "golden", name+".yaml"), got.String())
}

// redactMigrationScript replaces the Python script of the migration with its file name.
func redactMigrationScript(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = redactMigrationScript(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = redactMigrationScript(inner)
		}
	case string:
		if value == migrationProgram {
			return "<migrate.py>"
		}
	}
	return value
}

func withName(m *mlflowv1.MLflow, name string) *mlflowv1.MLflow {
	m.Name = name
	return m
}

// buildObjects returns the objects that would be applied for an MLflow.
func buildObjects(t testing.TB, m *mlflowv1.MLflow, in Inputs) []*unstructured.Unstructured {
	t.Helper()
	p := NewPlan(m, in)
	objects, err := apply.Render(p.All(), "mlflow", m)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	return objects
}
