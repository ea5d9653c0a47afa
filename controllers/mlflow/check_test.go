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

// A server keeps running unchanged while the check of the new image fails, and its status is reported. Another image is checked
// again, and then the database is migrated.
func TestServerKeepsRunningWhileCheckFails(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	since := len(w.server.Writes)
	w.image("broken")
	m := getMLflow(t, w.server)
	m.Status.Version = "3.10.1"
	if err := w.server.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	fails := workloads{checkFails: true}
	w.reconcileUntil("checked", fails, func(m *mlflowv1.MLflow) bool {
		c, _ := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
		return c.Reason == migration.ReasonMigrationCheckFailed && c.Status == metav1.ConditionFalse
	})
	if available := w.condition(ConditionAvailable); available.Status != metav1.ConditionTrue {
		t.Errorf("Available=%s %s: %s", available.Status, available.Reason, available.Message)
	}
	if progressing := w.condition(ConditionProgressing); progressing.Status != metav1.ConditionFalse || progressing.Reason != migration.ReasonMigrationCheckFailed ||
		!strings.Contains(progressing.Message, "The server was not stopped, because the check of image ") {
		t.Errorf("Progressing=%s %s: %s", progressing.Status, progressing.Reason, progressing.Message)
	}
	d := &appsv1.Deployment{}
	if w.get("mlflow", d); *d.Spec.Replicas == 0 || w.madeJobs(since) != 0 {
		t.Errorf("%d replicas, %d migration Jobs", *d.Spec.Replicas, w.madeJobs(since))
	}
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
	if err := w.server.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := w.once(); err != nil {
		t.Fatal(err)
	}
	if available := w.condition(ConditionAvailable); available.Status != metav1.ConditionFalse || available.Reason != ReasonDeploymentNotReady {
		t.Errorf("the server is down, and Available=%s %s: %s", available.Status, available.Reason, available.Message)
	}

	w.image("fixed")
	w.reconcileUntil("ready with another image", workloads{}, func(m *mlflowv1.MLflow) bool { return migratedAndReady(m) && m.Status.Version == settings.Version })
	if made := w.madeJobs(since); made != 1 {
		t.Errorf("%d migration Jobs", made)
	}
}

// Nothing is written while a check continues, or to fail for the same reason, however long that takes.
func TestWaitForCheckWritesNoStatus(t *testing.T) {
	for name, ends := range map[string]bool{"it runs": false, "it fails": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, mlflowWithAllChildren())
			w.reconcileUntil("ready", workloads{}, migratedAndReady)
			w.force("yes")
			for range 5 {
				if _, err := w.once(); err != nil {
					t.Fatal(err)
				}
				if ends {
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
			since := len(w.server.Writes)
			for range 3 {
				if _, err := w.once(); err != nil {
					t.Fatal(err)
				}
			}
			if writes := w.server.Writes[since:]; len(writes) > 0 {
				t.Errorf("unexpected writes: %+v", writes)
			}
		})
	}
}

// A second change before the server is ready again is checked as well, and is not confused with the first.
func TestCheckBeforeARolloutIsDone(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("migrated", workloads{unready: true}, rolloutPending)
	w.reconcileUntil("ready", workloads{}, func(m *mlflowv1.MLflow) bool { return conditions.IsTrue(m.Status.Conditions, ConditionAvailable) })
	w.force("again")
	if _, err := w.once(); err != nil {
		t.Fatal(err)
	}
	if m := getMLflow(t, w.server); unmarked(m) || w.condition(migration.ConditionMigration).Reason != migration.ReasonMigrationChecking {
		t.Errorf("annotations %v, Migration %+v", m.Annotations, w.condition(migration.ConditionMigration))
	}
}

// image changes the image of the spec.
func (w *fixture) image(name string) {
	w.t.Helper()
	m := getMLflow(w.t, w.server)
	m.Spec.Image = &mlflowv1.ImageConfig{Image: name}
	if err := w.server.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// succeedCheck reconciles until the check is made, and lets it succeed.
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
