package mlflow

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
)

// ConditionMigration says whether the database has the schema of the supported version.
const ConditionMigration = "Migration"

// Reasons of the conditions while a migration is asked for. Those with Force are for a migration that the annotation
// asked for; clients of the original know them.
const (
	ReasonMigrationRunning          = "MigrationRunning"
	ReasonMigrationScalingDown      = "MigrationScalingDown"
	ReasonMigrationRetrying         = "MigrationRetrying"
	ReasonMigrationFailed           = "MigrationFailed"
	ReasonMigrationError            = "MigrationError"
	ReasonMigrationSucceeded        = "MigrationSucceeded"
	ReasonForceMigrationRunning     = "ForceMigrationRunning"
	ReasonForceMigrationScalingDown = "ForceMigrationScalingDown"
	ReasonForceMigrationRestart     = "ForceMigrationRestartRequested"
	ReasonDowngradeRefused          = "DowngradeRefused"
)

// migrationReport is what the condition Migration says. Unless the pass goes on to the rollout, Progressing
// says the same, and Available as soon as the server is stopped.
type migrationReport struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Progressing: the operator goes on by itself.
	Progressing bool
}

func succeeded(generation int64) *migrationReport {
	return &migrationReport{
		Status: metav1.ConditionTrue, Reason: ReasonMigrationSucceeded,
		Message: fmt.Sprintf("Migration for generation %d completed successfully", generation),
	}
}

// reportMigration sets the conditions that a decision is about.
func reportMigration(m *mlflowv1.MLflow, d *migrationDecision) {
	if d.Report == nil {
		return
	}
	r := d.Report
	setCondition(m, ConditionMigration, r.Status, r.Reason, r.Message)
	if d.rolls() {
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
	fail(m, ReasonMigrationError, text)
	setCondition(m, ConditionMigration, metav1.ConditionUnknown, ReasonMigrationError, text)
	return err
}

// refused reports that the server is kept from following this build.
func refused(m *mlflowv1.MLflow) (message string, is bool) {
	c, found := conditions.Get(m.Status.Conditions, ConditionMigration)
	return c.Message, found && c.Reason == ReasonDowngradeRefused
}
