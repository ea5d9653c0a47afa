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

// force sets the annotation to a value.
func (w *fixture) force(value string) {
	w.t.Helper()
	m := getMLflow(w.t, w.server)
	m.Annotations = map[string]string{migration.ForceAnnotation: value}
	if err := w.server.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// reconcileUntil reconciles, with the given results of workloads, until the MLflow has the desired state.
func (w *fixture) reconcileUntil(description string, fare workloads, wanted func(*mlflowv1.MLflow) bool) {
	w.t.Helper()
	var last error
	for range 20 {
		_, last = w.once()
		if wanted(getMLflow(w.t, w.server)) {
			return
		}
		fare.run(w.t, w.server)
	}
	w.t.Fatalf("never %s: %v\n%+v", description, last, getMLflow(w.t, w.server).Status)
}

// madeJobs counts the migration Jobs that were created after so many writes.
func (w *fixture) madeJobs(since int) (count int) {
	for _, write := range w.server.Writes[since:] {
		if write.Verb == "create" && write.Kind == "Job" && write.Name != "mlflow-migration-check" {
			count++
		}
	}
	return count
}

func unmarked(m *mlflowv1.MLflow) bool {
	_, marked := m.Annotations[migration.ForceAnnotation]
	return !marked
}

func migratedAndReady(m *mlflowv1.MLflow) bool {
	return unmarked(m) && conditions.IsTrue(m.Status.Conditions, migration.ConditionMigration) && conditions.IsTrue(m.Status.Conditions, ConditionAvailable)
}

// The annotation stays until the server is ready again [mlflow-47].
func TestForcedMigrationOfUnreadyServer(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	since := len(w.server.Writes)
	w.force("now")
	broken := workloads{unready: true}
	w.reconcileUntil("migrated", broken, rolloutPending)
	for range 3 {
		broken.run(t, w.server)
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
	}
	if m := getMLflow(t, w.server); m.Annotations[migration.ForceAnnotation] != "now" || w.condition(migration.ConditionMigration).Reason != migration.ReasonForceMigrationRunning {
		t.Errorf("annotations %v, Migration %+v", m.Annotations, w.condition(migration.ConditionMigration))
	}
	w.reconcileUntil("ready again", workloads{}, migratedAndReady)
	if made := w.madeJobs(since); made != 1 {
		t.Errorf("%d Jobs", made)
	}
}

// A migration that is forced after a Job has succeeded and before the server is ready needs a Job of its own
// [mlflow-48] [mlflow-49] [D13].
func TestForcedBetweenJobAndServer(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	broken := workloads{unready: true}
	w.reconcileUntil("migrated", broken, rolloutPending)
	first := migrationJobs(t, w.server)[0].UID
	since := len(w.server.Writes)
	w.force("")
	w.reconcileUntil("migrated again", broken, func(m *mlflowv1.MLflow) bool { return rolloutPending(m) && m.Status.Migration.Force != "" })
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	if jobs := migrationJobs(t, w.server); w.madeJobs(since) != 1 || len(jobs) != 1 || jobs[0].UID == first {
		t.Errorf("%d Jobs were made, and there are %d", w.madeJobs(since), len(jobs))
	}
}

// A forced migration that fails permanently removes the annotation; adding it again requests another migration [D10].
func TestForcedMigrationFailsTerminally(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	failed := func(m *mlflowv1.MLflow) bool {
		c, _ := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
		return unmarked(m) && c.Status == metav1.ConditionFalse && c.Reason == migration.ReasonMigrationFailed &&
			strings.Contains(c.Message, "only supports SQL backend store URIs")
	}
	for range 2 {
		since := len(w.server.Writes)
		w.force("same")
		w.reconcileUntil("failed", workloads{failing: true}, failed)
		d := &appsv1.Deployment{}
		if w.get("mlflow", d); w.madeJobs(since) != 1 || *d.Spec.Replicas != 0 {
			t.Errorf("%d Jobs, %d replicas", w.madeJobs(since), *d.Spec.Replicas)
		}
	}
}

// A value that is set while the annotation is being removed requests another migration [D10].
func TestForcedAgainWhileAnnotationIsRemoved(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	since := len(w.server.Writes)
	w.force("one")
	changed := false
	w.server.Refuse = func(write fakeapi.Write) error {
		if write.Verb == "patch" && write.Kind == "MLflow" && !changed {
			changed = true
			w.force("two")
		}
		return nil
	}
	w.reconcileUntil("ready again", workloads{}, migratedAndReady)
	if made := w.madeJobs(since); !changed || made != 2 {
		t.Errorf("%d Jobs, changed: %t", made, changed)
	}
}
