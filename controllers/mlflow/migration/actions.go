package migration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

const (
	hintForce = ". After fixing the issue, add the " + ForceAnnotation + " annotation to the MLflow resource to force a rerun."
	hintRetry = " If you want to rerun immediately after fixing the issue, add the " + ForceAnnotation + " annotation."
)

// resume applies the workloads of the spec. It resets the condition if a request was withdrawn before its Job started.
func resume(f *Facts) Decision {
	d := Decision{Workloads: RunAsSpecified, Record: f.takeOverRecord()}
	if c := f.Condition; c != nil && (c.Status == metav1.ConditionUnknown || PinsServer(c.Reason)) {
		d.Report = Succeeded(f.Generation)
	}
	return d
}

// Succeeded returns the report of a completed migration.
func Succeeded(generation int64) *Report {
	return &Report{
		Status: metav1.ConditionTrue, Reason: ReasonMigrationSucceeded,
		Message: fmt.Sprintf("Migration for generation %d completed successfully", generation),
	}
}

func awaitRollout(f *Facts) Decision { return rolloutDecision(f, f.Record.Version) }

func rolloutDecision(f *Facts, version string) Decision {
	return Decision{Workloads: RunAsSpecified, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: f.forcedReason(ReasonMigrationRunning),
		Message: fmt.Sprintf("The database is migrated to version %s; waiting for the server to become ready", version),
	}}
}

// keepFailure reports the failure again for the current generation. It adds the record of a failure of the legacy operator.
func keepFailure(f *Facts) Decision {
	text := fmt.Sprintf("The migration to version %s or newer failed", f.Supported) + hintForce
	if f.hasReason(ReasonMigrationFailed) {
		text = f.Condition.Message
	}
	d := failedDecision(text)
	if f.hasLegacyFailure() {
		d.Record = f.newRecord(mlflowv1.MigrationFailed, "")
	}
	return d
}

func awaitDeletion(f *Facts) Decision {
	return scaledDownDecision(f, ReasonMigrationRunning, f.withTrigger("Waiting for migration Job %s to be deleted", f.Observed.Job.Name), ShortRequeue)
}

func recreateJob(f *Facts) Decision {
	outcome := "completed"
	if f.jobFailed() {
		outcome = "failed"
	}
	if f.Force == "" {
		return deleteJobDecision(f, f.Observed.Job, ReasonMigrationRunning, f.withTrigger("Deleted %s migration Job %s to create it again", outcome, f.Observed.Job.Name))
	}
	return deleteJobDecision(f, f.Observed.Job, ReasonForceMigrationRestart, f.withTrigger(
		"Deleted %s migration Job %s so the force-migrate annotation can create a fresh Job with the same generated name", outcome, f.Observed.Job.Name))
}

func recreateChangedJob(f *Facts) Decision {
	return deleteJobDecision(f, f.Observed.Job, ReasonMigrationRunning, f.withTrigger("Deleted migration Job %s, which failed with another image, version or stores,", f.Observed.Job.Name))
}

// recordFailure removes the annotation before it records the failure. If the operator stops in between, the failed Job without an
// annotation yields the same record. Adding the annotation again requests another migration, as the message states.
func recordFailure(f *Facts) Decision {
	if f.Force != "" {
		return Decision{Workloads: ScaleToZero, Step: StepRemoveAnnotation, RequeueAfter: ShortRequeue}
	}
	d := failedDecision(f.Observed.Job.Failure.Message + hintForce)
	d.Record = f.newRecord(mlflowv1.MigrationFailed, f.Observed.Job.UID)
	return d
}

// retryJob deletes the failed Job after a pause, so that another is created.
func retryJob(f *Facts) Decision {
	if retryAt := f.Observed.Job.FailedAt.Add(failureRetryDelay); f.Now.Before(retryAt) {
		return scaledDownDecision(f, ReasonMigrationRetrying, retryMessage(f, retryAt), max(retryAt.Sub(f.Now), time.Second))
	}
	d := deleteJobDecision(f, f.Observed.Job, ReasonMigrationRetrying, retryMessage(f, f.Now.Add(ShortRequeue)))
	d.RequeueAfter = ShortRequeue
	return d
}

func retryMessage(f *Facts, at time.Time) string {
	return f.Observed.Job.Failure.Message + " Retrying automatically after " + at.UTC().Format(time.RFC3339) + "." + hintRetry
}

// recordSuccess starts the rollout of the server. The condition is True only once the server is ready.
func recordSuccess(f *Facts) Decision {
	return recordMigrated(f, f.newSuccessRecord(f.Observed.Job.ImageReport, f.Observed.Job.UID))
}

func recordMigrated(f *Facts, r *mlflowv1.MigrationStatus) Decision {
	d := rolloutDecision(f, r.Version)
	d.Record = r
	return d
}

func replaceJob(f *Facts) Decision {
	reason := ReasonMigrationRunning
	if f.Force != "" {
		reason = ReasonForceMigrationRestart
	}
	return deleteJobDecision(f, f.Observed.Job, reason, f.withTrigger("Deleted migration Job %s, whose program is not running, to create it again", f.Observed.Job.Name))
}

// deleteOtherJob deletes a Job that blocks the desired one. The result of a deleted MLflow's Job does not apply: its stores may differ,
// and a migration without changes takes seconds.
func deleteOtherJob(f *Facts) Decision {
	other := f.idleOther()
	text := f.withTrigger("Deleted migration Job %s, whose program is not running,", other.description())
	if other.Phase != JobRunning {
		text = f.withTrigger("Deleted finished migration Job %s", other.description())
	}
	return deleteJobDecision(f, other, ReasonMigrationRunning, text)
}

// description returns the name and origin of a Job other than the desired one.
func (j *JobState) description() string {
	if j.Orphaned {
		return j.Name + " of an earlier MLflow"
	}
	return j.Name + " from a previous desired generation"
}

// deleteCronJobRun deletes a Job of a CronJob. Garbage collection and archival resume with their next run.
func deleteCronJobRun(f *Facts) Decision {
	job := f.removableCronJobRun()
	reason := "never started"
	if job.Started {
		reason = fmt.Sprintf("runs for longer than %s", cronJobDeadline)
	}
	return deleteJobDecision(f, job, ReasonMigrationScalingDown,
		WithCause(f.withTrigger("Deleted Job %s, which %s,", job.Name, reason), job.Cause))
}

func awaitCronJobRuns(f *Facts) Decision {
	text := f.withTrigger("Waiting for the CronJobs to be suspended before migration")
	if len(f.Observed.CronJobRuns) > 0 {
		c := &f.Observed.CronJobRuns[0]
		text = WithCause(f.withTrigger("Waiting for Job %s to end before migration, at most %s from its start,", c.Name, cronJobDeadline), c.Cause)
	}
	return scaledDownDecision(f, ReasonMigrationScalingDown, text, ShortRequeue)
}

func awaitIdleDatabase(f *Facts) Decision {
	text := f.withTrigger("Waiting for MLflow pods to quiesce before migration: %d replicas remain", f.Observed.DatabaseUsers)
	if f.Observed.UsersPerServerText != "" {
		text = f.withTrigger("Waiting for MLflow pods to quiesce before migration: %s", f.Observed.UsersPerServerText)
	}
	if f.Observed.DatabaseUsers == 0 {
		text = f.withTrigger("Waiting for MLflow pods to quiesce before migration: the Deployment is being stopped")
	}
	return scaledDownDecision(f, ReasonMigrationScalingDown, WithCause(text, f.Observed.UserPodsText), ShortRequeue)
}

// awaitJob waits for the Job, and records that it runs and for which force annotation.
func awaitJob(f *Facts) Decision {
	d := scaledDownDecision(f, ReasonMigrationRunning, WithCause(f.withTrigger("Waiting for migration Job %s to finish", f.JobName), f.Observed.Job.Cause), JobPollInterval)
	if f.Record.Outcome != mlflowv1.MigrationRunning || f.Record.Force != f.Force {
		d.Record = f.newRecord(mlflowv1.MigrationRunning, "")
	}
	return d
}

func awaitOtherJob(f *Facts) Decision {
	other := &f.Observed.OtherJobs[0]
	until, retry := "finish", JobPollInterval
	if other.Terminating {
		until, retry = "be deleted", ShortRequeue
	}
	text := f.withTrigger("Waiting for migration Job %s to %s", other.description(), until)
	return scaledDownDecision(f, ReasonMigrationRunning, WithCause(text, other.Cause), retry)
}

func createJob(f *Facts) Decision {
	d := scaledDownDecision(f, ReasonMigrationRunning, f.withTrigger("Created migration Job %s", f.JobName), JobPollInterval)
	d.Step, d.Record = StepCreateJob, f.newRecord(mlflowv1.MigrationRunning, "")
	return d
}

func scaledDownDecision(f *Facts, reason, message string, retry time.Duration) Decision {
	return Decision{Workloads: ScaleToZero, RequeueAfter: retry, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: f.forcedReason(reason), Message: message, Progressing: true,
	}}
}

func deleteJobDecision(f *Facts, j *JobState, reason, message string) Decision {
	d := scaledDownDecision(f, reason, message, deletionRequeue(j))
	d.Step, d.Job = StepDeleteJob, j
	return d
}

func failedDecision(message string) Decision {
	return Decision{Workloads: ScaleToZero, Report: &Report{
		Status: metav1.ConditionFalse, Reason: ReasonMigrationFailed, Message: message,
	}}
}

// forcedReason returns the reason for a forced migration that corresponds to plain, or plain.
func (f *Facts) forcedReason(plain string) string {
	forced := f.Force != "" || f.Record.Force != "" && f.rolloutPending()
	switch {
	case forced && plain == ReasonMigrationRunning:
		return ReasonForceMigrationRunning
	case forced && plain == ReasonMigrationScalingDown:
		return ReasonForceMigrationScalingDown
	default:
		return plain
	}
}

// WithCause appends the cause of a failure to a text, unless it is empty.
func WithCause(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}
