package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// A server with replicas is stopped only after a read-only Job has verified that the image can be pulled and database servers can be read.
// The checkRules apply to such a server until a migration has started, and precede the jobRules, which stop the server.

// checkHash identifies the requested migration, for check Jobs.
func (f *Facts) checkHash() string {
	return resources.ShortHash(strings.Join([]string{f.Supported, f.Image, f.Stores, fmt.Sprint(f.Generation), f.Force, f.Record.JobUID}, "\n"))
}

// needsCheck reports whether the server has replicas that must not be stopped before a check has succeeded.
func (f *Facts) needsCheck() bool {
	if !f.Observed.ServerEnabled || f.migrationStarted() {
		return false
	}
	c := f.Observed.Check
	return c == nil || c.Terminating || c.RequestHash != f.checkHash() || c.Phase != JobSucceeded
}

// migrationStarted reports whether the record is Running, a migration Job has started, or the requested Job has finished.
func (f *Facts) migrationStarted() bool {
	return f.Record.Outcome == mlflowv1.MigrationRunning || slices.ContainsFunc(f.Observed.OtherJobs, func(j JobState) bool { return j.inProgress() }) ||
		f.Observed.Job != nil && (f.Observed.Job.Started || f.jobFinished() && f.satisfiesRequest(f.Observed.Job))
}

// whenCheckJobExists returns a predicate that is true if a check is needed, its Job exists, and when returns true.
func whenCheckJobExists(when func(*Facts, *JobState) bool) func(*Facts) bool {
	return func(f *Facts) bool { return f.needsCheck() && f.Observed.Check != nil && when(f, f.Observed.Check) }
}

// checkRules are a part of migrationRules.
var checkRules = []migrationRule{
	{"the check is for another migration, or is being deleted",
		whenCheckJobExists(func(f *Facts, c *JobState) bool { return c.Terminating || c.RequestHash != f.checkHash() }), replaceCheck},
	{"the database is newer than the image",
		whenCheckJobExists(func(_ *Facts, c *JobState) bool {
			return c.Phase == JobFailed && c.ExitCode == resources.ExitNewerDatabase
		}), refuseDowngrade},
	{"the check failed permanently",
		whenCheckJobExists(func(_ *Facts, c *JobState) bool { return c.Phase == JobFailed && c.Failure.Terminal }), reportTerminalCheck},
	{"the check failed and is repeated",
		whenCheckJobExists(func(_ *Facts, c *JobState) bool { return c.Phase == JobFailed }), repeatCheck},
	{"the check runs",
		whenCheckJobExists(func(*Facts, *JobState) bool { return true }), awaitCheck},
	{"the server runs and no check Job exists",
		(*Facts).needsCheck, createCheck},
	{"the check found the database up to date",
		func(f *Facts) bool { return f.upToDate() }, recordUpToDate},
}

// upToDate reports whether the check found the schema of the image in the database, and nothing else requires a migration Job.
func (f *Facts) upToDate() bool {
	c, noOtherJobs := f.Observed.Check, len(f.Observed.OtherJobs) == 0 && (f.Observed.Job == nil || f.jobFinished())
	return f.Observed.ServerEnabled && c != nil && noOtherJobs && !f.migrationStarted() && f.Force == "" && !f.Always && c.ImageReport.Schema != "" && c.ImageReport.Database == c.ImageReport.Schema
}

// recordUpToDate starts the rollout without stopping the server. The record keeps the UID of the last migration Job.
func recordUpToDate(f *Facts) Decision {
	return recordMigrated(f, f.newSuccessRecord(f.Observed.Check.ImageReport, types.UID(f.Record.JobUID)))
}

func refuseDowngrade(f *Facts) Decision {
	text := fmt.Sprintf("The server and the CronJobs do not change, because the database is newer than image %s: %s", f.Image, f.Observed.Check.Failure.Message)
	if f.Recorded != "" {
		text += fmt.Sprintf("; status.version is %s", f.Recorded)
	}
	d := keepRunningDecision(ReasonDowngradeRefused, text, 0)
	d.Report.Status, d.Report.Progressing = metav1.ConditionFalse, false
	return d
}

func replaceCheck(f *Facts) Decision {
	if f.Observed.Check.Terminating {
		return keepRunningDecision(ReasonMigrationChecking, "Waiting for check Job "+f.Observed.Check.Name+" to be deleted", ShortRequeue)
	}
	return deleteCheckDecision(f, ReasonMigrationChecking, "Deleted check Job "+f.Observed.Check.Name+", which was created for another migration")
}

// reportTerminalCheck waits for a change of checkHash, such as by a correction of the spec.
func reportTerminalCheck(f *Facts) Decision {
	d := keepRunningDecision(ReasonMigrationCheckFailed, f.checkFailureMessage()+" Correct spec.image or the store URI, or install the release of the operator that supports this MLflow version.", 0)
	d.Report.Status, d.Report.Progressing = metav1.ConditionFalse, false
	return d
}

// repeatCheck deletes the failed check after a pause. The message does not change when the pause ends, to avoid a status write.
func repeatCheck(f *Facts) Decision {
	text := f.checkFailureMessage() + " It is repeated until it succeeds."
	if remaining := f.Observed.Check.FailedAt.Add(failureRetryDelay).Sub(f.Now); remaining > 0 {
		return keepRunningDecision(ReasonMigrationCheckFailed, text, remaining)
	}
	return deleteCheckDecision(f, ReasonMigrationCheckFailed, text)
}

// checkFailureMessage does not number the attempts, so that a repeated failure causes no status write.
func (f *Facts) checkFailureMessage() string {
	return fmt.Sprintf("The server was not stopped, because the pre-migration check of image %s and the databases failed: %s.",
		f.Image, strings.TrimSuffix(f.Observed.Check.Failure.Message, "."))
}

func awaitCheck(f *Facts) Decision {
	c := f.Observed.Check
	if c.Cause == "" {
		return keepRunningDecision(ReasonMigrationChecking, "Waiting for check Job "+c.Name+" to finish", JobPollInterval)
	}
	return keepRunningDecision(ReasonMigrationCheckFailed, fmt.Sprintf("The server was not stopped, because check Job %s does not succeed: %s", c.Name, c.Cause), JobPollInterval)
}

func createCheck(f *Facts) Decision {
	d := keepRunningDecision(ReasonMigrationChecking, "Created a Job that checks the image and the databases before the server is stopped", JobPollInterval)
	d.Step, d.CheckHash = StepCreateCheckJob, f.checkHash()
	return d
}

func deleteCheckDecision(f *Facts, reason, message string) Decision {
	d := keepRunningDecision(reason, message, deletionRequeue(f.Observed.Check))
	d.Step, d.Job = StepDeleteJob, f.Observed.Check
	return d
}

func keepRunningDecision(reason, message string, retry time.Duration) Decision {
	return Decision{Workloads: KeepRunning, RequeueAfter: retry, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: reason, Message: message, Progressing: true,
	}}
}
