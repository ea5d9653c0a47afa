package mlflow

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// setForceAnnotation sets the annotation to a value.
func (w *fixture) setForceAnnotation(value string) {
	w.t.Helper()
	m := getMLflow(w.t, w.server)
	m.Annotations = map[string]string{migration.ForceAnnotation: value}
	if err := w.server.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// reconcileUntil reconciles, with the given results of workloads, until done returns true.
func (w *fixture) reconcileUntil(description string, simulated workloads, done func(*mlflowv1.MLflow) bool) {
	w.t.Helper()
	var last error
	for range 20 {
		_, last = w.reconcileOnce()
		if done(getMLflow(w.t, w.server)) {
			return
		}
		simulated.run(w.t, w.server)
	}
	w.t.Fatalf("the MLflow does not become %s: error %v, status %+v", description, last, getMLflow(w.t, w.server).Status)
}

// createdJobs returns the number of migration Jobs that were created since Writes had the length writesBefore.
func (w *fixture) createdJobs(writesBefore int) (count int) {
	for _, write := range w.server.Writes[writesBefore:] {
		if write.Verb == "create" && write.Kind == "Job" && write.Name != "mlflow-migration-check" {
			count++
		}
	}
	return count
}

func forceAnnotationAbsent(m *mlflowv1.MLflow) bool {
	_, forced := m.Annotations[migration.ForceAnnotation]
	return !forced
}

func migratedAndReady(m *mlflowv1.MLflow) bool {
	return forceAnnotationAbsent(m) && conditions.IsTrue(m.Status.Conditions, migration.ConditionMigration) && conditions.IsTrue(m.Status.Conditions, ConditionAvailable)
}

// The annotation is kept until the server is ready again [mlflow-47].
func TestForcedMigrationOfUnreadyServer(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	writesBefore := len(w.server.Writes)
	w.setForceAnnotation("now")
	broken := workloads{unready: true}
	w.reconcileUntil("migrated", broken, rolloutPending)
	for range 3 {
		broken.run(t, w.server)
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if m := getMLflow(t, w.server); m.Annotations[migration.ForceAnnotation] != "now" || w.condition(migration.ConditionMigration).Reason != migration.ReasonForceMigrationRunning {
		t.Errorf("got annotations %v, Migration %+v", m.Annotations, w.condition(migration.ConditionMigration))
	}
	w.reconcileUntil("ready again", workloads{}, migratedAndReady)
	if created := w.createdJobs(writesBefore); created != 1 {
		t.Errorf("%d Jobs were created, want 1", created)
	}
}

// A migration that is forced after a Job has succeeded and before the server is ready gets a new Job
// [mlflow-48] [mlflow-49] [D13].
func TestForcedBetweenJobAndServer(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	broken := workloads{unready: true}
	w.reconcileUntil("migrated", broken, rolloutPending)
	first := migrationJobs(t, w.server)[0].UID
	writesBefore := len(w.server.Writes)
	w.setForceAnnotation("")
	w.reconcileUntil("migrated again", broken, func(m *mlflowv1.MLflow) bool { return rolloutPending(m) && m.Status.Migration.Force != "" })
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	if jobs := migrationJobs(t, w.server); w.createdJobs(writesBefore) != 1 || len(jobs) != 1 || jobs[0].UID == first {
		t.Errorf("%d Jobs were created and %d exist, want one new Job", w.createdJobs(writesBefore), len(jobs))
	}
}

// If a forced migration fails permanently, the operator removes the annotation; adding it again requests another migration [D10].
func TestForcedMigrationFailsTerminally(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	failed := func(m *mlflowv1.MLflow) bool {
		c, _ := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
		return forceAnnotationAbsent(m) && c.Status == metav1.ConditionFalse && c.Reason == migration.ReasonMigrationFailed &&
			strings.Contains(c.Message, "only supports SQL backend store URIs")
	}
	for range 2 {
		writesBefore := len(w.server.Writes)
		w.setForceAnnotation("same")
		w.reconcileUntil("failed", workloads{migrationFails: true}, failed)
		d := &appsv1.Deployment{}
		if w.get("mlflow", d); w.createdJobs(writesBefore) != 1 || *d.Spec.Replicas != 0 {
			t.Errorf("%d Jobs were created and the Deployment has %d replicas, want 1 and 0", w.createdJobs(writesBefore), *d.Spec.Replicas)
		}
	}
}

// A value that is set while the annotation is being removed requests another migration [D10].
func TestForcedAgainWhileAnnotationIsRemoved(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	writesBefore := len(w.server.Writes)
	w.setForceAnnotation("one")
	changed := false
	w.server.Refuse = func(write fakeapi.Write) error {
		if write.Verb == "patch" && write.Kind == "MLflow" && !changed {
			changed = true
			w.setForceAnnotation("two")
		}
		return nil
	}
	w.reconcileUntil("ready again", workloads{}, migratedAndReady)
	if created := w.createdJobs(writesBefore); !changed || created != 2 {
		t.Errorf("%d Jobs were created, want 2; annotation changed: %t", created, changed)
	}
}
