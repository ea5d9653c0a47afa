package mlflow

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// While the check of a new image fails, the server runs unchanged and its status is reported. The next image gets its own check, and then
// the database is migrated.
func TestServerKeepsRunningWhileCheckFails(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	writesBefore := len(w.server.Writes)
	w.setImage("broken")
	m := getMLflow(t, w.server)
	m.Status.Version = "3.10.1"
	if err := w.server.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	failingCheck := workloads{checkFails: true}
	w.reconcileUntil("checked", failingCheck, func(m *mlflowv1.MLflow) bool {
		c, _ := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
		return c.Reason == migration.ReasonMigrationCheckFailed && c.Status == metav1.ConditionFalse
	})
	if available := w.condition(ConditionAvailable); available.Status != metav1.ConditionTrue {
		t.Errorf("Available=%s %s: %s", available.Status, available.Reason, available.Message)
	}
	if progressing := w.condition(ConditionProgressing); progressing.Status != metav1.ConditionFalse || progressing.Reason != migration.ReasonMigrationCheckFailed ||
		!strings.Contains(progressing.Message, "The server was not stopped, because the pre-migration check of image ") {
		t.Errorf("Progressing=%s %s: %s", progressing.Status, progressing.Reason, progressing.Message)
	}
	d := &appsv1.Deployment{}
	if w.get("mlflow", d); *d.Spec.Replicas == 0 || w.createdJobs(writesBefore) != 0 {
		t.Errorf("%d replicas and %d migration Jobs, want replicas and no Job", *d.Spec.Replicas, w.createdJobs(writesBefore))
	}
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
	if err := w.server.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if available := w.condition(ConditionAvailable); available.Status != metav1.ConditionFalse || available.Reason != ReasonDeploymentNotReady {
		t.Errorf("no replica is ready, but Available=%s %s: %s", available.Status, available.Reason, available.Message)
	}

	w.setImage("fixed")
	w.reconcileUntil("ready with another image", workloads{}, func(m *mlflowv1.MLflow) bool { return migratedAndReady(m) && m.Status.Version == settings.Version })
	if created := w.createdJobs(writesBefore); created != 1 {
		t.Errorf("%d migration Jobs were created, want 1", created)
	}
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if w.get("mlflow-migration-check", &batchv1.Job{}) {
		t.Error("the check Job was not deleted after the migration, so a later request could use its result")
	}
}

// A take-over from the legacy operator writes the status once and creates no Job. The first change of the image after the
// take-over is checked.
func TestImageChangeAfterTakeOverIsChecked(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	m := getMLflow(t, w.server)
	m.Status.Migration = nil // the legacy operator recorded only the version
	if err := w.server.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	writesBefore := len(w.server.Writes)
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	byKind := map[string]int{}
	for _, write := range w.server.Writes[writesBefore:] {
		byKind[write.Kind]++
	}
	if byKind["MLflow"] != 1 || byKind["Job"] != 0 {
		t.Errorf("got writes %v, want one of the MLflow and none of Jobs", byKind)
	}
	if record := getMLflow(t, w.server).Status.Migration; record == nil || record.Version != settings.Version {
		t.Errorf("got record %+v, want the version of the status", record)
	}
	w.setImage("another")
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	if !w.get("mlflow-migration-check", &batchv1.Job{}) {
		t.Error("the image is not checked")
	}
	if c := w.condition(migration.ConditionMigration); !migration.PinsServer(c.Reason) {
		t.Errorf("Migration=%s %s: %s", c.Status, c.Reason, c.Message)
	}
}

// While a check runs, or after it has failed, nothing is written.
func TestWaitForCheckWritesNothing(t *testing.T) {
	for name, fails := range map[string]bool{"running check": false, "failed check": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, mlflowWithAllChildren())
			w.reconcileUntil("ready", workloads{}, migratedAndReady)
			w.setForceAnnotation("yes")
			for range 5 {
				if _, err := w.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				if fails {
					workloads{checkFails: true}.run(t, w.server)
				}
			}
			m := getMLflow(t, w.server)
			for i := range m.Status.Conditions {
				m.Status.Conditions[i].LastTransitionTime = metav1.NewTime(midday)
			}
			if err := w.server.Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			writesBefore := len(w.server.Writes)
			for range 3 {
				if _, err := w.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
			}
			if writes := w.server.Writes[writesBefore:]; len(writes) > 0 {
				t.Errorf("unexpected writes: %+v", writes)
			}
		})
	}
}

// A migration that is requested during a rollout gets its own check.
func TestCheckDuringRollout(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("migrated", workloads{unready: true}, rolloutPending)
	w.setForceAnnotation("again")
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if m := getMLflow(t, w.server); forceAnnotationAbsent(m) || w.condition(migration.ConditionMigration).Reason != migration.ReasonMigrationChecking {
		t.Errorf("got annotations %v, Migration %+v", m.Annotations, w.condition(migration.ConditionMigration))
	}
}

// edit changes the spec of the MLflow.
func (w *fixture) edit(change func(*mlflowv1.MLflowSpec)) {
	w.t.Helper()
	m := getMLflow(w.t, w.server)
	change(&m.Spec)
	if err := w.server.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// setImage sets spec.image.
func (w *fixture) setImage(name string) {
	w.t.Helper()
	w.edit(func(s *mlflowv1.MLflowSpec) { s.Image = &mlflowv1.ImageConfig{Image: name} })
}

// succeedCheck reconciles until stable, and marks the check Job as succeeded.
func (w *fixture) succeedCheck() {
	w.t.Helper()
	if _, err := w.reconcileUntilStable(); err != nil {
		w.t.Fatal(err)
	}
	check := &batchv1.Job{}
	if !w.get("mlflow-migration-check", check) {
		w.t.Fatal("the Job mlflow-migration-check was not created")
	}
	check.Status.Succeeded = 1
	if err := w.server.Status().Update(w.t.Context(), check); err != nil {
		w.t.Fatal(err)
	}
}
