package migration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// factsOf returns the facts of an MLflow of generation 2 that was never migrated and whose workloads are observed and idle.
func factsOf(changes ...func(*Facts)) *Facts {
	f := &Facts{
		Now: noon, Generation: 2, Supported: "3.14.0", Image: "mlflow:v3", Stores: "here",
		JobName: "mlflow-mg-3140-g2", Observed: &Workloads{ScaledDown: true},
	}
	for _, change := range changes {
		change(f)
	}
	return f
}

type change = func(*Facts)

func withVersion(version string) change { return func(f *Facts) { f.Recorded = version } }
func withForce(hash string) change      { return func(f *Facts) { f.Force = hash } }
func always(f *Facts)                   { f.Always = true }
func unobserved(f *Facts)               { f.Observed = nil }

func withCondition(status metav1.ConditionStatus, reason string, generation int64) change {
	return func(f *Facts) {
		f.Condition = &metav1.Condition{Status: status, Reason: reason, Message: "as before", ObservedGeneration: generation}
	}
}

func withOutcome(outcome mlflowv1.MigrationOutcome, changes ...func(*mlflowv1.MigrationStatus)) change {
	return func(f *Facts) {
		f.Record = *f.newRecord(outcome, "uid")
		for _, change := range changes {
			change(&f.Record)
		}
	}
}

func job(phase jobPhase, changes ...func(*JobState)) change {
	return func(f *Facts) {
		j := jobState(f.JobName, phase)
		for _, change := range changes {
			change(&j)
		}
		f.Observed.Job = &j
	}
}

func otherJob(changes ...func(*JobState)) change {
	return func(f *Facts) {
		j := jobState("mlflow-mg-3140-g1", JobRunning)
		for _, change := range changes {
			change(&j)
		}
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
}

func orphanedJob(changes ...func(*JobState)) change {
	return func(f *Facts) {
		j := jobState(f.JobName, JobSucceeded)
		for _, change := range append(changes, orphaned) {
			change(&j)
		}
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
}

func jobState(name string, phase jobPhase) JobState {
	j := JobState{Name: name, UID: "uid", Phase: phase, Managed: true, Image: "mlflow:v3"}
	if phase == JobFailed {
		j.FailedAt, j.Failure = noon.Add(-time.Minute), Failure{Message: "it broke"}
	}
	return j
}

func terminal(j *JobState)    { j.Failure.Terminal = true }
func retryDue(j *JobState)    { j.FailedAt = noon.Add(-failureRetryDelay) }
func started(j *JobState)     { j.Started = true }
func terminating(j *JobState) { j.Terminating = true }
func legacy(j *JobState)      { j.Managed = false }
func orphaned(j *JobState)    { j.Orphaned = true }
func withImage(image string) func(*JobState) {
	return func(j *JobState) { j.Image = image }
}
func withRequestHash(hash string) func(*JobState) {
	return func(j *JobState) { j.RequestHash = hash }
}

func databaseUsers(n int32) change { return func(f *Facts) { f.Observed.DatabaseUsers = n } }

func cronJobsActive(f *Facts)   { f.Observed.CronJobsActive = true }
func serverReady(f *Facts)      { f.Observed.ServerReady = true }
func deadlineExceeded(f *Facts) { f.Observed.CronJobRuns[0].StartedAt = noon.Add(-2 * cronJobDeadline) }

// cronJobRun adds a Job of the garbage collection.
func cronJobRun(changes ...func(*JobState)) change {
	return func(f *Facts) {
		c := JobState{Name: "mlflow-gc-1", UID: "gc", Phase: JobRunning, StartedAt: noon, Cause: "pod gc"}
		for _, change := range changes {
			change(&c)
		}
		f.Observed.CronJobRuns = append(f.Observed.CronJobRuns, c)
	}
}

// ruleCase contains facts and the expected decision.
type ruleCase struct {
	name         string
	facts        *Facts
	rule         string
	workloads    workloadMode
	step         Step
	reason       string                    // of the report; "" for none
	message      string                    // a part of the message of the report
	outcome      mlflowv1.MigrationOutcome // of the record; "" for none
	requeueAfter time.Duration
}

const (
	unknown = metav1.ConditionUnknown
	running = mlflowv1.MigrationRunning
	pending = mlflowv1.MigrationRolloutPending
	failed  = mlflowv1.MigrationFailed
	done    = mlflowv1.MigrationCompleted
)

// ruleCases cover every rule and facts that almost match it.
var ruleCases = slices.Concat(jobCases, checkCases)

var jobCases = []ruleCase{
	{"a newer version is recorded", factsOf(unobserved, withVersion("3.18.0")), "nothing is requested", RunAsSpecified, StepNone, "", "", done, 0},
	{"the database was migrated to a newer version, and the rollout is pending", factsOf(unobserved, withVersion("3.14.0"), withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Version = "3.18.0" })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonMigrationRunning, "migrated to version 3.18.0", "", 0},
	{"a rollout is pending for another image", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })), "the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"[D16] the newer image is configured again", factsOf(unobserved, withVersion("3.14.0"), withCondition(metav1.ConditionFalse, ReasonDowngradeRefused, 2)),
		"nothing is requested", RunAsSpecified, StepNone, ReasonMigrationSucceeded, "Migration for generation 2 completed successfully", done, 0},
	{"the previous image is configured again while Jobs of CronJobs run", factsOf(unobserved, withVersion("3.14.0"), withOutcome(done), withCondition(unknown, ReasonMigrationScalingDown, 1)),
		"nothing is requested", RunAsSpecified, StepNone, ReasonMigrationSucceeded, "Migration for generation 2 completed successfully", "", 0},
	{"the image differs", factsOf(unobserved, withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })), "the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"a Job with another image does not satisfy the request", factsOf(withVersion("3.14.0"), job(JobSucceeded, func(j *JobState) { j.Image = "other" }), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonMigrationRunning,
		"Deleted completed migration Job mlflow-mg-3140-g2 to create it again because the image differs from the image that migrated the database", "", fallbackRequeue},
	{"[mlflow-36] the legacy operator recorded only the version", factsOf(unobserved, withVersion("3.14.0")), "nothing is requested", RunAsSpecified, StepNone, "", "", done, 0},
	{"[mlflow-36] the version is recorded", factsOf(unobserved, withVersion("3.14.0"), withOutcome(done)), "nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"the legacy operator recorded the version, and a failure of an earlier generation", factsOf(unobserved, withVersion("3.14.0"), withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1)),
		"nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"[mlflow-36] this generation is migrated", factsOf(unobserved, withVersion("3.14.0"), withOutcome(done), always, withCondition(metav1.ConditionTrue, ReasonMigrationSucceeded, 2)),
		"nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"[D12] a rollout is pending", factsOf(unobserved, withOutcome(pending)), "the server is rolled out after the migration", RunAsSpecified, StepNone,
		ReasonMigrationRunning, "waiting for the server to become ready", "", 0},
	{"[D12] a rollout is pending, and the object was edited", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Generation = 1 })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonMigrationRunning, "", "", 0},
	{"[mlflow-47] a forced rollout is pending", factsOf(unobserved, withForce("a"), withOutcome(pending)), "the server is rolled out after the migration", RunAsSpecified, StepNone,
		ReasonForceMigrationRunning, "", "", 0},
	{"a forced rollout is pending, and the annotation is removed", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Force = "a" })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonForceMigrationRunning, "", "", 0},
	{"mode Always migrates each generation, even while a rollout is pending", factsOf(unobserved, always, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Generation = 1 })),
		"the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"a rollout is pending for other stores", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })),
		"the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"[mlflow-53] a failure holds in a new generation", factsOf(unobserved, withOutcome(failed), withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1)),
		"a failure is recorded", ScaleToZero, StepNone, ReasonMigrationFailed, "as before", "", 0},
	{"a failure holds although the condition has another reason", factsOf(unobserved, withOutcome(failed), withCondition(unknown, ReasonMigrationError, 2)),
		"a failure is recorded", ScaleToZero, StepNone, ReasonMigrationFailed, "The migration to version 3.14.0 or newer failed. After fixing", "", 0},
	{"[D11] a failure does not hold for another image", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Image = "broken" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] a failure does not hold for another version", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Version = "3.13.0" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] a failure does not hold for other stores", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] a Job that failed with another image is deleted", factsOf(job(JobFailed, terminal), withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Image = "broken" })),
		"the settings changed after the Job failed", ScaleToZero, StepDeleteJob, ReasonMigrationRunning, "Deleted migration Job mlflow-mg-3140-g2, which failed with another image, version or stores, because", "", fallbackRequeue},
	{"the Job is being deleted", factsOf(job(JobRunning, terminating)), "the Job is being deleted", ScaleToZero, StepNone, ReasonMigrationRunning, "to be deleted", "", ShortRequeue},
	{"[mlflow-48] the annotation was added after a success", factsOf(withForce("a"), job(JobSucceeded), withCondition(unknown, ReasonMigrationRunning, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart,
		"Deleted completed migration Job mlflow-mg-3140-g2 so the force-migrate annotation can create a fresh Job with the same generated name because the mlflow.opendatahub.io/force-migrate annotation is present", "", fallbackRequeue},
	{"[mlflow-49] the previous success does not satisfy the pending restart", factsOf(withForce("a"), job(JobSucceeded), withCondition(unknown, ReasonForceMigrationRestart, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"[mlflow-54] the annotation was added after a failure", factsOf(withForce("a"), job(JobFailed, terminal), withOutcome(failed), withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "Deleted failed migration Job", "", fallbackRequeue},
	{"the deletion of a Job of the legacy operator causes no event", factsOf(withForce("a"), job(JobSucceeded, legacy)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", ShortRequeue},
	{"the annotation was added again after a success", factsOf(withForce("a"), withVersion("3.14.0"), job(JobSucceeded, withRequestHash("a")), withOutcome(done)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"the annotation got another value", factsOf(withForce("b"), job(JobSucceeded, withRequestHash("a")), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"[mlflow-37] the annotation was added while the Job ran", factsOf(withForce("a"), job(JobSucceeded), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the Job has migrated", RunAsSpecified, StepNone, ReasonForceMigrationRunning, "", pending, 0},
	{"[D10] a permanent failure of a forced Job removes the annotation", factsOf(withForce("a"), job(JobFailed, terminal, withRequestHash("a"))),
		"the Job failed permanently", ScaleToZero, StepRemoveAnnotation, "", "", "", ShortRequeue},
	{"[D10] the failure is recorded once the annotation is removed", factsOf(job(JobFailed, terminal, withRequestHash("a")), withOutcome(running), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the Job failed permanently", ScaleToZero, StepNone, ReasonMigrationFailed, "it broke. After fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation to the MLflow resource to force a rerun.", failed, 0},
	{"[D10] a forced Job with a retryable failure is retried after the delay", factsOf(withForce("a"), job(JobFailed, withRequestHash("a"))),
		"the Job failed and is retried", ScaleToZero, StepNone, ReasonMigrationRetrying, "it broke Retrying automatically after 2026-11-21T12:01:00Z.", "", time.Minute},
	{"[mlflow-50] a terminal failure", factsOf(job(JobFailed, terminal)), "the Job failed permanently", ScaleToZero, StepNone, ReasonMigrationFailed,
		"to force a rerun", failed, 0},
	{"[mlflow-51] a retryable failure", factsOf(job(JobFailed)), "the Job failed and is retried", ScaleToZero, StepNone, ReasonMigrationRetrying,
		"If you want to rerun immediately after fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation.", "", time.Minute},
	{"[mlflow-52] the delay has passed", factsOf(job(JobFailed, retryDue)), "the Job failed and is retried", ScaleToZero, StepDeleteJob, ReasonMigrationRetrying,
		"Retrying automatically after 2026-11-21T12:00:02Z", "", ShortRequeue},
	{"[mlflow-46] the Job succeeded", factsOf(job(JobSucceeded)), "the Job has migrated", RunAsSpecified, StepNone, ReasonMigrationRunning, "", pending, 0},
	{"[mlflow-53] the legacy operator recorded a failure", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1)),
		"the legacy operator recorded a permanent failure", ScaleToZero, StepNone, ReasonMigrationFailed, "as before", failed, 0},
	{"[mlflow-53] the legacy operator recorded a failure, and its Job has succeeded since", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1), job(JobSucceeded)),
		"the Job has migrated", RunAsSpecified, StepNone, ReasonMigrationRunning, "", pending, 0},
	{"[mlflow-53] the legacy operator recorded a failure, and the annotation was added", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1), withForce("a")),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonForceMigrationRunning, "", running, JobPollInterval},
	{"[D8] a Job whose program is not running has another image", factsOf(job(JobRunning, withImage("missing"))),
		"the Job differs from the desired Job, and its program is not running", ScaleToZero, StepDeleteJob, ReasonMigrationRunning, "whose program is not running", "", fallbackRequeue},
	{"[D8] a Job whose program is not running predates the annotation", factsOf(withForce("a"), job(JobRunning)),
		"the Job differs from the desired Job, and its program is not running", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"a Job with another image is running", factsOf(job(JobRunning, withImage("other"), started)), "the Job runs", ScaleToZero, StepNone,
		ReasonMigrationRunning, "", running, JobPollInterval},
	{"a finished Job of a deleted MLflow has the desired name", factsOf(orphanedJob()), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted finished migration Job mlflow-mg-3140-g2 of an earlier MLflow because status.version is empty during bootstrap", "", ShortRequeue},
	{"a finished Job of a deleted MLflow does not satisfy the annotation", factsOf(orphanedJob(), withForce("a"), databaseUsers(1)), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonForceMigrationRunning, "", "", ShortRequeue},
	{"a finished Job of a deleted MLflow is being deleted", factsOf(orphanedJob(terminating)), "another Job is running", ScaleToZero, StepNone,
		ReasonMigrationRunning, "Waiting for migration Job mlflow-mg-3140-g2 of an earlier MLflow to be deleted because", "", ShortRequeue},
	{"the program of a Job of a deleted MLflow is not running", factsOf(otherJob(orphaned)), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted migration Job mlflow-mg-3140-g1 of an earlier MLflow, whose program is not running,", "", ShortRequeue},
	{"a Job of a deleted MLflow is running", factsOf(otherJob(orphaned, started)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g1 of an earlier MLflow to finish because", "", JobPollInterval},
	{"[D8] the program of a Job of a previous generation is not running", factsOf(otherJob()), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted migration Job mlflow-mg-3140-g1 from a previous desired generation", "", fallbackRequeue},
	{"[mlflow-55] a replica is running", factsOf(databaseUsers(1)), "pods still use the database", ScaleToZero, StepNone, ReasonMigrationScalingDown,
		"Waiting for MLflow pods to quiesce before migration: 1 replicas remain because status.version is empty during bootstrap", "", ShortRequeue},
	{"a CronJob may start a Job while the server is ready", factsOf(databaseUsers(1), cronJobsActive, serverReady), "Jobs of CronJobs are running", Drain, StepNone,
		ReasonMigrationScalingDown, "Waiting for the CronJobs to be suspended before migration because", "", ShortRequeue},
	{"the server keeps running until a Job of a CronJob ends", factsOf(databaseUsers(2), cronJobRun(started)), "Jobs of CronJobs are running", Drain, StepNone,
		ReasonMigrationScalingDown, "Waiting for Job mlflow-gc-1 to end before migration, at most 2h0m0s from its start, because status.version is empty during bootstrap: pod gc", "", ShortRequeue},
	{"a Job of a CronJob is being deleted", factsOf(cronJobRun(terminating)), "Jobs of CronJobs are running", Drain, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"a Job of a CronJob never started", factsOf(cronJobRun()), "a Job of a CronJob never started or exceeds its deadline", Drain, StepDeleteJob,
		ReasonMigrationScalingDown, "Deleted Job mlflow-gc-1, which never started, because status.version is empty during bootstrap: pod gc", "", ShortRequeue},
	{"a Job of a CronJob exceeds its deadline", factsOf(cronJobRun(started), deadlineExceeded), "a Job of a CronJob never started or exceeds its deadline", Drain, StepDeleteJob,
		ReasonMigrationScalingDown, "Deleted Job mlflow-gc-1, which runs for longer than 2h0m0s,", "", ShortRequeue},
	{"the server is not stopped while a Job of a CronJob runs and a failed Job is deleted", factsOf(cronJobRun(started), job(JobFailed, retryDue)), "the Job failed and is retried", Drain, StepDeleteJob,
		ReasonMigrationRetrying, "", "", ShortRequeue},
	{"[D14] no replica, but the Deployment controller has not observed the scale-down", factsOf(func(f *Facts) { f.Observed.ScaledDown = false }), "pods still use the database", ScaleToZero, StepNone,
		ReasonMigrationScalingDown, "is being stopped", "", ShortRequeue},
	{"a forced migration waits for pods", factsOf(databaseUsers(2), withForce("a")), "pods still use the database", ScaleToZero, StepNone,
		ReasonForceMigrationScalingDown, "2 replicas remain because the mlflow.opendatahub.io/force-migrate annotation is present", "", ShortRequeue},
	{"the Job runs", factsOf(job(JobRunning, started), withOutcome(running)), "the Job runs", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g2 to finish because", "", JobPollInterval},
	{"[D9] the pod of the Job cannot start", factsOf(job(JobRunning, func(j *JobState) { j.Cause = "no such image" }), withOutcome(running)), "the Job runs", ScaleToZero, StepNone,
		ReasonMigrationRunning, "because status.version is empty during bootstrap: no such image", "", JobPollInterval},
	{"the annotation is added while the Job runs", factsOf(withForce("a"), job(JobRunning, started), withOutcome(running, func(r *mlflowv1.MigrationStatus) { r.Force = "" })), "the Job runs", ScaleToZero, StepNone,
		ReasonForceMigrationRunning, "", running, JobPollInterval},
	{"[D8] a Job of a previous generation is running", factsOf(otherJob(started)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g1 from a previous desired generation to finish because", "", JobPollInterval},
	{"a Job of a previous generation is being deleted", factsOf(otherJob(terminating)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning, "", "", ShortRequeue},
	{"[mlflow-46] bootstrap", factsOf(), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"Created migration Job mlflow-mg-3140-g2 because status.version is empty during bootstrap", running, JobPollInterval},
	{"[mlflow-56] upgrade", factsOf(withVersion("3.10.1")), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		`because status.version="3.10.1" is older than the oldest supported version 3.14.0`, running, JobPollInterval},
	{"the stores have changed", factsOf(withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })), "a Job is needed", ScaleToZero, StepCreateJob,
		ReasonMigrationRunning, "because a store URI, or the Secret that contains it, has changed since the last migration", running, JobPollInterval},
	{"mode Always", factsOf(withVersion("3.14.0"), always), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"because spec.migration.mode=Always and desired generation 2 has not completed migration yet", running, JobPollInterval},
	{"a change of the spec interrupted a migration", factsOf(withVersion("3.14.0"), withOutcome(running)), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"because an earlier migration to version 3.14.0 or newer has not been completed", running, JobPollInterval},
}

func TestMigrationRules(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range ruleCases {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.facts)
			seen[d.Rule] = true
			if d.Rule != c.rule || d.Workloads != c.workloads || d.Step != c.step || d.RequeueAfter != c.requeueAfter {
				t.Errorf("got rule %q, workloads %q, step %q, requeue after %s, want %q, %q, %q, %s",
					d.Rule, d.Workloads, d.Step, d.RequeueAfter, c.rule, c.workloads, c.step, c.requeueAfter)
			}
			var reason, message string
			if d.Report != nil {
				reason, message = d.Report.Reason, d.Report.Message
			}
			if reason != c.reason || !strings.Contains(message, c.message) {
				t.Errorf("got report %s: %s, want %s: %s", reason, message, c.reason, c.message)
			}
			var want *mlflowv1.MigrationStatus
			if c.outcome != "" {
				want = c.facts.newRecord(c.outcome, "uid")
			}
			if diff := cmp.Diff(want, d.Record, cmpopts.IgnoreFields(mlflowv1.MigrationStatus{}, "JobUID", "Version")); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
	for _, rule := range migrationRules {
		if !seen[rule.name] {
			t.Errorf("no case covers rule %q", rule.name)
		}
	}
}

// The recorded version is the one that the Job reported. Without a report it is the newer of the supported and the
// previously recorded version.
func TestMigratedRecord(t *testing.T) {
	reported := func(j *JobState) {
		j.ImageReport = resources.ImageReport{MLflow: "3.18.0", Schema: "new", Database: "new"}
	}
	for name, c := range map[string]struct {
		facts   *Facts
		version string
	}{
		"reported":                             {factsOf(job(JobSucceeded, reported), withOutcome(running)), "3.18.0"},
		"reported, and older":                  {factsOf(withVersion("3.18.1"), always, job(JobSucceeded, reported), withOutcome(running)), "3.18.0"},
		"not reported":                         {factsOf(job(JobSucceeded), withOutcome(running)), "3.14.0"},
		"not reported, newer version recorded": {factsOf(withVersion("3.18.1"), always, job(JobSucceeded), withOutcome(running)), "3.18.1"},
		"reported by a check":                  {upgrade(withOtherImage, check(JobSucceeded, reportedSchema("new", "new"))), "3.18.0"},
	} {
		r := Decide(c.facts).Record
		if r == nil || r.Outcome != pending || r.Version != c.version {
			t.Errorf("%s: got record %+v, want a pending one with the expected version", name, r)
		}
	}
}

// TestMigrationRuleOrder checks that the position of each rule matters: for each rule but the last, a case matches the rule and a
// later one.
func TestMigrationRuleOrder(t *testing.T) {
	last := len(migrationRules) - 1
	if !migrationRules[last].when(&Facts{}) {
		t.Errorf("the last rule %q does not always match", migrationRules[last].name)
	}
	observeIndex := slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.name == "the workloads were not observed" })
	for i, rule := range migrationRules[:last] {
		precedes := slices.ContainsFunc(ruleCases, func(c ruleCase) bool {
			return c.rule == rule.name && slices.ContainsFunc(migrationRules[i+1:], func(later migrationRule) bool {
				needsNoObservation := slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.name == later.name }) <= observeIndex
				return (c.facts.Observed != nil || needsNoObservation || later.name == migrationRules[last].name) && later.when(c.facts)
			})
		})
		if !precedes {
			t.Errorf("in no case does rule %q precede another matching rule", rule.name)
		}
	}
}
