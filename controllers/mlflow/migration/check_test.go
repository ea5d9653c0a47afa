package migration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

func serverRunning(f *Facts) {
	f.Observed.ServerEnabled, f.Observed.ServerReady, f.Observed.DatabaseUsers, f.Observed.ScaledDown = true, true, 1, false
}

// check adds a check Job for the requested migration. Changes that follow it may make the Job outdated.
func check(phase jobPhase, changes ...func(*JobState)) change {
	return func(f *Facts) {
		c := jobState("mlflow-migration-check", phase)
		c.RequestHash = f.checkHash()
		for _, change := range changes {
			change(&c)
		}
		f.Observed.Check = &c
	}
}

func upgrade(changes ...change) *Facts {
	return factsOf(append([]change{withVersion("3.10.1"), serverRunning}, changes...)...)
}

func withCause(text string) func(*JobState) { return func(j *JobState) { j.Cause = text } }

func exitCode(n int) func(*JobState) { return func(j *JobState) { j.ExitCode = int32(n) } }

func reportedSchema(schema, database string) func(*JobState) {
	return func(j *JobState) {
		j.ImageReport = resources.ImageReport{MLflow: "3.18.0", Schema: schema, Database: database}
	}
}

var withOtherImage = func(f *Facts) {
	withVersion("3.14.0")(f)
	withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })(f)
}

// checkCases are the cases with a running server or a check Job.
var checkCases = []ruleCase{
	{"the server runs and no check Job exists", upgrade(), "the server runs and no check Job exists", KeepRunning, StepCreateCheckJob, ReasonMigrationChecking, "before the server is stopped", "", JobPollInterval},
	{"Jobs of CronJobs run, and no check Job exists", upgrade(cronJobsActive, cronJobRun(started)), "the server runs and no check Job exists", KeepRunning, StepCreateCheckJob, ReasonMigrationChecking, "", "", JobPollInterval},
	{"a forced migration is checked before the previous Job is deleted", upgrade(withForce("a"), job(JobSucceeded), withOutcome(done)), "the server runs and no check Job exists", KeepRunning, StepCreateCheckJob,
		ReasonMigrationChecking, "", "", JobPollInterval},
	{"a rollout is pending for other stores, and the server runs", factsOf(serverRunning, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })),
		"the server runs and no check Job exists", KeepRunning, StepCreateCheckJob, ReasonMigrationChecking, "", "", JobPollInterval},
	{"the check runs", upgrade(check(JobRunning, started)), "the check runs", KeepRunning, StepNone, ReasonMigrationChecking, "Waiting for check Job mlflow-migration-check to finish", "", JobPollInterval},
	{"the image of the check cannot be pulled", upgrade(check(JobRunning, withCause("no such image"))), "the check runs", KeepRunning, StepNone, ReasonMigrationCheckFailed,
		"check Job mlflow-migration-check does not succeed: no such image", "", JobPollInterval},
	{"the check succeeded", upgrade(check(JobSucceeded)), "pods still use the database", ScaleToZero, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"the check succeeded, and Jobs of CronJobs are running", upgrade(check(JobSucceeded), cronJobRun(started)), "Jobs of CronJobs are running", Drain, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"the check was for another image", upgrade(check(JobSucceeded), func(f *Facts) { f.Image = "fixed" }), "the check is for another migration, or is being deleted", KeepRunning, StepDeleteJob,
		ReasonMigrationChecking, "Deleted check Job mlflow-migration-check, which was created for another migration", "", fallbackRequeue},
	{"the check was for another generation", upgrade(check(JobRunning, started), func(f *Facts) { f.Generation++ }), "the check is for another migration, or is being deleted", KeepRunning, StepDeleteJob,
		ReasonMigrationChecking, "", "", fallbackRequeue},
	{"the check was for the previous migration", upgrade(check(JobSucceeded), func(f *Facts) { f.Record.JobUID = "later" }), "the check is for another migration, or is being deleted", KeepRunning, StepDeleteJob,
		ReasonMigrationChecking, "", "", fallbackRequeue},
	{"the check Job belongs to a deleted MLflow", upgrade(check(JobSucceeded, orphaned), func(f *Facts) { f.Observed.Check.RequestHash = "" }), "the check is for another migration, or is being deleted", KeepRunning, StepDeleteJob,
		ReasonMigrationChecking, "", "", ShortRequeue},
	{"the check is being deleted", upgrade(check(JobSucceeded, terminating)), "the check is for another migration, or is being deleted", KeepRunning, StepNone, ReasonMigrationChecking, "to be deleted", "", ShortRequeue},
	{"[D16] the database is newer than the image", upgrade(withVersion("3.18.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "newer" }), check(JobFailed, terminal, exitCode(17))),
		"the database is newer than the image", KeepRunning, StepNone, ReasonDowngradeRefused,
		"The server and the CronJobs do not change, because the database is newer than image mlflow:v3: it broke; status.version is 3.18.0", "", 0},
	{"mode Always refuses the downgrade again in later reconciles", upgrade(withVersion("3.14.0"), always, withOutcome(done), withCondition(metav1.ConditionFalse, ReasonDowngradeRefused, 2), check(JobFailed, terminal, exitCode(17))),
		"the database is newer than the image", KeepRunning, StepNone, ReasonDowngradeRefused, "because the database is newer than image mlflow:v3", "", 0},
	{"another image has the same schema", upgrade(withOtherImage, check(JobSucceeded, reportedSchema("same", "same"))), "the check found the database up to date", RunAsSpecified, StepNone,
		ReasonMigrationRunning, "The database is migrated to version 3.18.0; waiting", pending, 0},
	{"another image has a newer schema", upgrade(withOtherImage, check(JobSucceeded, reportedSchema("new", "old"))), "pods still use the database", ScaleToZero, StepNone,
		ReasonMigrationScalingDown, "because the image differs", "", ShortRequeue},
	{"another image, and the database is a file", upgrade(withOtherImage, check(JobSucceeded, reportedSchema("new", ""))), "pods still use the database", ScaleToZero, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"mode Always migrates an up-to-date database", upgrade(always, check(JobSucceeded, reportedSchema("same", "same"))), "pods still use the database", ScaleToZero, StepNone,
		ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"the check failed permanently", upgrade(check(JobFailed, terminal)), "the check failed permanently", KeepRunning, StepNone, ReasonMigrationCheckFailed,
		"The server was not stopped, because the pre-migration check of image mlflow:v3 and the databases failed: it broke. Correct spec.image", "", 0},
	{"the check failed", upgrade(check(JobFailed)), "the check failed and is repeated", KeepRunning, StepNone, ReasonMigrationCheckFailed, "failed: it broke. It is repeated", "", failureRetryDelay / 2},
	{"the check failed, and the retry delay has passed", upgrade(check(JobFailed, retryDue)), "the check failed and is repeated", KeepRunning, StepDeleteJob, ReasonMigrationCheckFailed, "failed: it broke. It is repeated", "", fallbackRequeue},
	{"a change of the spec withdraws the request", factsOf(withVersion("3.14.0"), serverRunning, withCondition(unknown, ReasonMigrationCheckFailed, 1)), "nothing is requested",
		RunAsSpecified, StepNone, ReasonMigrationSucceeded, "", done, 0},
	{"the server is scaled up during the migration", upgrade(withOutcome(running), job(JobRunning, started)), "pods still use the database", ScaleToZero, StepNone,
		ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"the server is scaled up while a previous Job runs", upgrade(otherJob(started)), "pods still use the database", ScaleToZero, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"a Job of the legacy operator has succeeded", upgrade(job(JobSucceeded, legacy)), "the Job has migrated", RunAsSpecified, StepNone, ReasonMigrationRunning, "", pending, 0},
	{"no server is running", factsOf(check(JobFailed)), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
}

// The message of a failed check is the same for each attempt, to avoid status writes.
func TestFailedCheckKeepsMessage(t *testing.T) {
	before, after := Decide(upgrade(check(JobFailed))), Decide(upgrade(check(JobFailed, retryDue)))
	if *before.Report != *after.Report {
		t.Errorf("the report changed from %+v to %+v", before.Report, after.Report)
	}
	terminalReport := Decide(upgrade(check(JobFailed, terminal))).Report
	if terminalReport.Status != metav1.ConditionFalse || terminalReport.Progressing || !strings.Contains(terminalReport.Message, "Correct spec.image") {
		t.Errorf("unexpected report of a terminal failure: %+v", terminalReport)
	}
}
