package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// example is an object and its expected health.
type example struct {
	name   string
	object string
	want   Verdict
}

// parse decodes an object as a client decodes the response of an API server.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(content); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return u
}

// checkExamples evaluates each example, and fails if the evaluation changes the object.
func checkExamples(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			u := parse(t, e.object)
			before := u.DeepCopy()
			got := Of(u)
			if difference := cmp.Diff(e.want, got); difference != "" {
				t.Errorf("Of() differs (-want +got):\n%s", difference)
			}
			if difference := cmp.Diff(before, u); difference != "" {
				t.Errorf("Of() changed the object:\n%s", difference)
			}
		})
	}
}

// atHour returns the given hour of the fixed date of the examples.
func atHour(hour int) time.Time { return time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC) }
