package mlflow

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// migrationSeconds returns the age of the migration Job in the metrics.
func migrationSeconds(t *testing.T) float64 {
	t.Helper()
	return metric(t, "odh_platform_mlflow_migration_running_seconds", "")
}

// metric returns the value of a gauge, or of the counter with a result.
func metric(t *testing.T, name, result string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch {
			case family.GetName() != name:
			case result == "":
				return m.GetGauge().GetValue()
			case m.GetLabel()[0].GetValue() == result:
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// The manager does not read the Job of a paused, waiting or deleted MLflow. The alert for slow migrations must not fire for the last age of
// that Job.
func TestAgeOfJobIsResetWhenPausedWaitingOrDeleted(t *testing.T) {
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
	w.edit(func(s *mlflowv1.MLflowSpec) { s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "missing"} })
	expect("waiting for the CA bundle", false)
	w.edit(func(s *mlflowv1.MLflowSpec) { s.CABundleConfigMap = nil })
	expect("no longer waiting", true)
	if err := w.server.Delete(t.Context(), getMLflow(t, w.server)); err != nil {
		t.Fatal(err)
	}
	expect("deleted", false)
}

// A finished Job is counted once, although the reconcile that records it is repeated.
func TestMigrationIsCountedOnce(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("running", workloads{}, func(*mlflowv1.MLflow) bool { return w.migrationJobExists() })
	before := metric(t, "odh_platform_mlflow_migrations_total", "succeeded")
	w.refuse = func(kind, _ string) error {
		if kind == "Deployment" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "mlflow", errors.New("denied by a policy"))
		}
		return nil
	}
	for range 5 {
		runWorkloads(t, w.server)
		_, _ = w.reconcileOnce() // fails to scale up the server
	}
	if count := metric(t, "odh_platform_mlflow_migrations_total", "succeeded") - before; count != 0 {
		t.Errorf("%v migrations were counted before one was recorded", count)
	}
	w.refuse = func(string, string) error { return nil }
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	if count := metric(t, "odh_platform_mlflow_migrations_total", "succeeded") - before; count != 1 {
		t.Errorf("%v migrations were counted, want 1", count)
	}
}
