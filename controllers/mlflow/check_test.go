package mlflow

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// A server runs on as it is while the check of its successor fails, and what it does is reported. A change of the image is checked
// again, and then the database is migrated.
func TestServerRunsOnWhileTheCheckFails(t *testing.T) {
	w := newFixture(t, everything())
	w.until("ready", workloads{}, migratedAndReady)
	since := len(w.server.Writes)
	m := current(t, w.server)
	m.Status.Version = "3.10.1"
	if err := w.server.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	fails := workloads{checkFails: true}
	w.until("checked", fails, func(m *mlflowv1.MLflow) bool {
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

	m = current(t, w.server)
	m.Spec.Image = &mlflowv1.ImageConfig{Image: "fixed"}
	m.Generation++
	if err := w.server.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.until("ready with another image", workloads{}, func(m *mlflowv1.MLflow) bool { return migratedAndReady(m) && m.Status.Version == settings.Version })
	if made := w.madeJobs(since); made != 1 {
		t.Errorf("%d migration Jobs", made)
	}
}

// Nothing is written while a check goes on failing for the same reason.
func TestFailingCheckIsQuiet(t *testing.T) {
	w := newFixture(t, everything())
	w.until("ready", workloads{}, migratedAndReady)
	w.force("yes")
	fails := workloads{checkFails: true}
	for range 5 {
		fails.run(t, w.server)
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
	}
	since := len(w.server.Writes)
	for range 3 {
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
	}
	if writes := w.server.Writes[since:]; len(writes) > 0 {
		t.Errorf("%+v", writes)
	}
}
