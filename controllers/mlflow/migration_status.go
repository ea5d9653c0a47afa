package mlflow

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// reportMigration sets the conditions that a decision is about.
func reportMigration(m *mlflowv1.MLflow, d *migration.Decision) {
	if d.Report == nil {
		return
	}
	r := d.Report
	setCondition(m, migration.ConditionMigration, r.Status, r.Reason, r.Message)
	if d.Rolls() {
		return
	}
	progressing := metav1.ConditionFalse
	if r.Progressing {
		progressing = metav1.ConditionTrue
	}
	if !d.Serving {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, r.Reason, r.Message)
	}
	setCondition(m, ConditionProgressing, progressing, r.Reason, r.Message)
}

// failMigration reports a failure of our own, and returns it.
func failMigration(m *mlflowv1.MLflow, err error) error {
	text := fmt.Sprintf("Failed to reconcile migration: %v", err)
	fail(m, migration.ReasonMigrationError, text)
	setCondition(m, migration.ConditionMigration, metav1.ConditionUnknown, migration.ReasonMigrationError, text)
	return err
}

// keptAsIs reports that the Deployment of the server is kept from following this build, and the condition that says why.
func keptAsIs(m *mlflowv1.MLflow) (c metav1.Condition, is bool) {
	c, found := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
	return c, found && migration.KeepsServer(c.Reason)
}
