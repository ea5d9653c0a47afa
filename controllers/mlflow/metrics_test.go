package mlflow

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// migrationSeconds returns the age of the migration Job in the metrics.
func migrationSeconds(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "odh_platform_mlflow_migration_running_seconds" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("the age of the migration Job is not a metric")
	return 0
}

// The manager does not read the Job of a paused or deleted MLflow. The alert for slow migrations must not fire for its last age.
func TestAgeOfJobIsResetWhenPausedOrDeleted(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	expect := func(state string, running bool) {
		t.Helper()
		if _, err := w.reconcileUntilStable(); err != nil {
			t.Fatal(err)
		}
		if age := migrationSeconds(t); (age > 0) != running {
			t.Errorf("%s: got age %v s, want a running Job %t", state, age, running)
		}
	}
	pause := func(value string) {
		t.Helper()
		m := getMLflow(t, w.server)
		m.Annotations = map[string]string{names.PausedAnnotation: value}
		if err := w.server.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	expect("running", true)
	pause("true")
	expect("paused", false)
	pause("false")
	expect("resumed", true)
	if err := w.server.Delete(t.Context(), getMLflow(t, w.server)); err != nil {
		t.Fatal(err)
	}
	expect("deleted", false)
}
