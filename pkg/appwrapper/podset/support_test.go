package podset

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// newComponent returns a component with a template in YAML.
func newComponent(t testing.TB, text string) *awv1beta2.AppWrapperComponent {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &awv1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}}
}

// parseObject parses an object in YAML.
func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u, err := Decode(newComponent(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// pod is a minimal pod template.
const pod = `{spec: {containers: [{name: main, image: "registry.example.com/app:1"}]}}`

// jobSet has two replicated jobs.
const jobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - {name: workers, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: ` + pod + `}}}
  - {name: driver, template: {spec: {template: ` + pod + `}}}
`

// anyJSON decodes JSON, or returns invalid JSON as a string.
func anyJSON(raw []byte) any {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return string(raw)
	}
	return value
}
