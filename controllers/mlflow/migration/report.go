package migration

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionMigration says whether the database has the schema of the supported version.
const ConditionMigration = "Migration"

// Reasons of the conditions while a migration is requested. Those with Force are for a migration that the annotation
// asked for; clients of the original know them.
const (
	ReasonMigrationChecking         = "MigrationChecking"
	ReasonMigrationCheckFailed      = "MigrationCheckFailed"
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

// Report is what the condition Migration says. Unless the reconciliation continues with the rollout, Progressing
// says the same, and Available as soon as the server is stopped.
type Report struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Progressing: the operator continues by itself.
	Progressing bool
}

// Succeeded is the report of a migration that is done.
func Succeeded(generation int64) *Report {
	return &Report{
		Status: metav1.ConditionTrue, Reason: ReasonMigrationSucceeded,
		Message: fmt.Sprintf("Migration for generation %d completed successfully", generation),
	}
}

// KeepsServer says of a reason of the condition that the Deployment of the server stays as it is.
func KeepsServer(reason string) bool {
	return reason == ReasonDowngradeRefused || reason == ReasonMigrationChecking || reason == ReasonMigrationCheckFailed
}
