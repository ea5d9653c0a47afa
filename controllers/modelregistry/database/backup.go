package database

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition on backups.
const (
	ReasonSucceeded = "BackupSucceeded"
	ReasonPending   = "BackupPending"
	ReasonFailed    = "BackupFailed"
	ReasonSuspended = "BackupSuspended"
	ReasonRefused   = "BackupRefused"
	ReasonForeign   = "BackupClaimForeign"
)

// Backups is how the backups of a database are.
type Backups struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// BackupsOf judges backups by their CronJob. While one runs, what is known of the one before it holds.
func BackupsOf(c *batchv1.CronJob) Backups {
	began, succeeded := c.Status.LastScheduleTime, c.Status.LastSuccessfulTime
	last := "there is none yet"
	if succeeded != nil {
		last = "the last one ended at " + succeeded.UTC().Format(time.RFC3339)
	}
	switch {
	case c.Spec.Suspend != nil && *c.Spec.Suspend:
		return Backups{metav1.ConditionFalse, ReasonSuspended, "No backups are made (" + last + "): remove spec.postgres.backup.suspend"}
	case began != nil && len(c.Status.Active) == 0 && (succeeded == nil || succeeded.Before(began)):
		return Backups{metav1.ConditionFalse, ReasonFailed, fmt.Sprintf("The backup of %s failed (%s): its log says why, see kubectl -n %s logs -l app.kubernetes.io/name=%s",
			began.UTC().Format(time.RFC3339), last, c.Namespace, c.Name)}
	case succeeded == nil:
		return Backups{metav1.ConditionUnknown, ReasonPending, "No backup has been made yet; the schedule is " + c.Spec.Schedule}
	}
	return Backups{metav1.ConditionTrue, ReasonSucceeded, "Backups are made: " + last}
}
