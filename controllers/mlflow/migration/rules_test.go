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

// factsOf is an MLflow of generation 2 that was never migrated, in a cluster that was looked at and is quiet.
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
func forced(by string) change           { return func(f *Facts) { f.Force = by } }
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
		j := aJob(f.JobName, phase)
		for _, change := range changes {
			change(&j)
		}
		f.Observed.Job = &j
	}
}

func otherJob(changes ...func(*JobState)) change {
	return func(f *Facts) {
		j := aJob("mlflow-mg-3140-g1", JobRunning)
		for _, change := range changes {
			change(&j)
		}
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
}

func leftoverJob(changes ...func(*JobState)) change {
	return func(f *Facts) {
		j := aJob(f.JobName, JobSucceeded)
		for _, change := range append(changes, orphaned) {
			change(&j)
		}
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
}

func aJob(name string, phase jobPhase) JobState {
	j := JobState{Name: name, UID: "uid", Phase: phase, Managed: true, Image: "mlflow:v3"}
	if phase == JobFailed {
		j.FailedAt, j.Failure = noon.Add(-time.Minute), Failure{Message: "it broke"}
	}
	return j
}

func terminal(j *JobState)    { j.Failure.Terminal = true }
func longAgo(j *JobState)     { j.FailedAt = noon.Add(-failureRetryDelay) }
func started(j *JobState)     { j.Started = true }
func terminating(j *JobState) { j.Terminating = true }
func legacy(j *JobState)      { j.Managed = false }
func orphaned(j *JobState)    { j.Orphaned = true }
func withImage(image string) func(*JobState) {
	return func(j *JobState) { j.Image = image }
}
func forcedBy(by string) func(*JobState) {
	return func(j *JobState) { j.RequestHash = by }
}

func databaseUsers(n int32) change { return func(f *Facts) { f.Observed.DatabaseUsers = n } }

func scheduling(f *Facts)     { f.Observed.CronJobsActive = true }
func serverReady(f *Facts)    { f.Observed.ServerReady = true }
func cronJobOverdue(f *Facts) { f.Observed.CronJobRuns[0].StartedAt = noon.Add(-2 * cronJobDeadline) }

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

// ruleCase is a situation and the expected decision.
type ruleCase struct {
	name    string
	facts   *Facts
	rule    string
	serving workloadMode
	step    Step
	reason  string // of the report; "" for none
	message string // part of it
	outcome mlflowv1.MigrationOutcome
	retry   time.Duration
}

const (
	unknown = metav1.ConditionUnknown
	running = mlflowv1.MigrationRunning
	pending = mlflowv1.MigrationRolloutPending
	failed  = mlflowv1.MigrationFailed
	done    = mlflowv1.MigrationCompleted
)

// ruleCases cover every rule and the situations that resemble it.
var ruleCases = slices.Concat(workCases, checkCases)

var workCases = []ruleCase{
	{"a newer version is recorded", factsOf(unobserved, withVersion("3.18.0")), "nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"a newer version was migrated to, and its rollout is pending", factsOf(unobserved, withVersion("3.14.0"), withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Version = "3.18.0" })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonMigrationRunning, "migrated to version 3.18.0", "", 0},
	{"a rollout is pending for another image", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })), "the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"[D16] the newer image is back", factsOf(unobserved, withVersion("3.14.0"), always, withCondition(metav1.ConditionFalse, ReasonDowngradeRefused, 2)),
		"nothing is requested", RunAsSpecified, StepNone, ReasonMigrationSucceeded, "Migration for generation 2 completed successfully", "", 0},
	{"the image differs", factsOf(unobserved, withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })), "the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"a Job of another image proves nothing", factsOf(withVersion("3.14.0"), job(JobSucceeded, func(j *JobState) { j.Image = "other" }), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Image = "other" })),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonMigrationRunning,
		"Deleted completed migration Job mlflow-mg-3140-g2 to create it again because the image differs from the image that migrated the database", "", fallbackRequeue},
	{"[mlflow-36] the version is recorded", factsOf(unobserved, withVersion("3.14.0")), "nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"[mlflow-36] this generation is done", factsOf(unobserved, withVersion("3.14.0"), always, withCondition(metav1.ConditionTrue, ReasonMigrationSucceeded, 2)),
		"nothing is requested", RunAsSpecified, StepNone, "", "", "", 0},
	{"[D12] a rollout is pending", factsOf(unobserved, withOutcome(pending)), "the server is rolled out after the migration", RunAsSpecified, StepNone,
		ReasonMigrationRunning, "waiting for the server to become ready", "", 0},
	{"[D12] a rollout is pending, and the object was edited", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Generation = 1 })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonMigrationRunning, "", "", 0},
	{"[mlflow-47] a forced rollout is pending", factsOf(unobserved, forced("a"), withOutcome(pending)), "the server is rolled out after the migration", RunAsSpecified, StepNone,
		ReasonForceMigrationRunning, "", "", 0},
	{"a forced rollout is pending, and the annotation is gone", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Force = "a" })),
		"the server is rolled out after the migration", RunAsSpecified, StepNone, ReasonForceMigrationRunning, "", "", 0},
	{"mode Always migrates each generation, pending or not", factsOf(unobserved, always, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Generation = 1 })),
		"the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"a rollout is pending for another database", factsOf(unobserved, withOutcome(pending, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })),
		"the workloads were not observed", ScaleToZero, StepObserve, "", "", "", 0},
	{"[mlflow-53] a failure holds in a new generation", factsOf(unobserved, withOutcome(failed), withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1)),
		"a failure is recorded", ScaleToZero, StepNone, ReasonMigrationFailed, "as before", "", 0},
	{"a failure holds although the condition was lost", factsOf(unobserved, withOutcome(failed), withCondition(unknown, ReasonMigrationError, 2)),
		"a failure is recorded", ScaleToZero, StepNone, ReasonMigrationFailed, "The migration to version 3.14.0 or newer failed. After fixing", "", 0},
	{"[D11] a failure does not hold for another image", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Image = "broken" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] nor for another version", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Version = "3.13.0" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] nor for other stores", factsOf(withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning, "", running, JobPollInterval},
	{"[D11] the Job that failed with another image goes", factsOf(job(JobFailed, terminal), withOutcome(failed, func(r *mlflowv1.MigrationStatus) { r.Image = "broken" })),
		"the settings changed after the Job failed", ScaleToZero, StepDeleteJob, ReasonMigrationRunning, "Deleted failed migration Job mlflow-mg-3140-g2", "", fallbackRequeue},
	{"a Job that is being deleted", factsOf(job(JobRunning, terminating)), "the Job is being deleted", ScaleToZero, StepNone, ReasonMigrationRunning, "to be deleted", "", ShortRequeue},
	{"[mlflow-48] the annotation came after the success", factsOf(forced("a"), job(JobSucceeded), withCondition(unknown, ReasonMigrationRunning, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart,
		"Deleted completed migration Job mlflow-mg-3140-g2 so the force-migrate annotation can create a fresh Job with the same generated name because the mlflow.opendatahub.io/force-migrate annotation is present", "", fallbackRequeue},
	{"[mlflow-49] the old success does not count while the restart is pending", factsOf(forced("a"), job(JobSucceeded), withCondition(unknown, ReasonForceMigrationRestart, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"[mlflow-54] the annotation came after a failure", factsOf(forced("a"), job(JobFailed, terminal), withOutcome(failed), withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "Deleted failed migration Job", "", fallbackRequeue},
	{"no event reports the end of a Job of the original", factsOf(forced("a"), job(JobSucceeded, legacy)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", ShortRequeue},
	{"the annotation was added again after a success", factsOf(forced("a"), withVersion("3.14.0"), job(JobSucceeded, forcedBy("a")), withOutcome(done)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"the annotation got another value", factsOf(forced("b"), job(JobSucceeded, forcedBy("a")), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the finished Job does not satisfy the request", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"[mlflow-37] the annotation came while the Job ran, as the original does it", factsOf(forced("a"), job(JobSucceeded), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the Job has migrated", RunAsSpecified, StepNone, ReasonForceMigrationRunning, "", pending, 0},
	{"[D10] a forced Job that failed for good consumes the annotation", factsOf(forced("a"), job(JobFailed, terminal, forcedBy("a"))),
		"the Job failed permanently", ScaleToZero, StepRemoveAnnotation, "", "", "", ShortRequeue},
	{"[D10] and its failure is recorded like any other", factsOf(job(JobFailed, terminal, forcedBy("a")), withOutcome(running), withCondition(unknown, ReasonForceMigrationRunning, 2)),
		"the Job failed permanently", ScaleToZero, StepNone, ReasonMigrationFailed, "it broke. After fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation to the MLflow resource to force a rerun.", failed, 0},
	{"[D10] a forced Job that may succeed later is not replaced at once", factsOf(forced("a"), job(JobFailed, forcedBy("a"))),
		"the Job failed and is retried", ScaleToZero, StepNone, ReasonMigrationRetrying, "it broke Retrying automatically after 2026-11-21T12:01:00Z.", "", time.Minute},
	{"[mlflow-50] a terminal failure", factsOf(job(JobFailed, terminal)), "the Job failed permanently", ScaleToZero, StepNone, ReasonMigrationFailed,
		"to force a rerun", failed, 0},
	{"[mlflow-51] a failure that may go away", factsOf(job(JobFailed)), "the Job failed and is retried", ScaleToZero, StepNone, ReasonMigrationRetrying,
		"If you want to rerun immediately after fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation.", "", time.Minute},
	{"[mlflow-52] the delay has passed", factsOf(job(JobFailed, longAgo)), "the Job failed and is retried", ScaleToZero, StepDeleteJob, ReasonMigrationRetrying,
		"Retrying automatically after 2026-11-21T12:00:02Z", "", ShortRequeue},
	{"[mlflow-46] the Job succeeded", factsOf(job(JobSucceeded)), "the Job has migrated", RunAsSpecified, StepNone, ReasonMigrationRunning, "", pending, 0},
	{"[mlflow-53] a failure of the original stays", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1)),
		"the legacy operator recorded a permanent failure", ScaleToZero, StepNone, ReasonMigrationFailed, "as before", failed, 0},
	{"[mlflow-53] unless its Job has succeeded since", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1), job(JobSucceeded)),
		"the Job has migrated", RunAsSpecified, StepNone, ReasonMigrationRunning, "", pending, 0},
	{"[mlflow-53] until it is forced", factsOf(withCondition(metav1.ConditionFalse, ReasonMigrationFailed, 1), forced("a")),
		"a Job is needed", ScaleToZero, StepCreateJob, ReasonForceMigrationRunning, "", running, JobPollInterval},
	{"[D8] the Job that could not start has the wrong image", factsOf(job(JobRunning, withImage("missing"))),
		"the Job differs from the desired Job and never started", ScaleToZero, StepDeleteJob, ReasonMigrationRunning, "which never started", "", fallbackRequeue},
	{"[D8] the Job that could not start is forced again", factsOf(forced("a"), job(JobRunning)),
		"the Job differs from the desired Job and never started", ScaleToZero, StepDeleteJob, ReasonForceMigrationRestart, "", "", fallbackRequeue},
	{"the Job of another image runs already", factsOf(job(JobRunning, withImage("other"), started)), "the Job runs", ScaleToZero, StepNone,
		ReasonMigrationRunning, "", running, JobPollInterval},
	{"a finished Job that an earlier MLflow left is in the way", factsOf(leftoverJob()), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted finished migration Job mlflow-mg-3140-g2 of an earlier MLflow because status.version is empty during bootstrap", "", ShortRequeue},
	{"nor does it answer an annotation", factsOf(leftoverJob(), forced("a"), databaseUsers(1)), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonForceMigrationRunning, "", "", ShortRequeue},
	{"it is on its way out", factsOf(leftoverJob(terminating)), "another Job is running", ScaleToZero, StepNone,
		ReasonMigrationRunning, "Waiting for migration Job mlflow-mg-3140-g2 of an earlier MLflow to be deleted because", "", ShortRequeue},
	{"a Job that an earlier MLflow left never started", factsOf(otherJob(orphaned)), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted migration Job mlflow-mg-3140-g1 of an earlier MLflow, which never started,", "", ShortRequeue},
	{"a Job that an earlier MLflow left runs", factsOf(otherJob(orphaned, started)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g1 of an earlier MLflow to finish because", "", JobPollInterval},
	{"[D8] a Job of before never started", factsOf(otherJob()), "a Job of another generation, or of an earlier MLflow, is idle", ScaleToZero, StepDeleteJob,
		ReasonMigrationRunning, "Deleted migration Job mlflow-mg-3140-g1 from a previous desired generation", "", fallbackRequeue},
	{"[mlflow-55] a replica is left", factsOf(databaseUsers(1)), "pods still use the database", ScaleToZero, StepNone, ReasonMigrationScalingDown,
		"Waiting for MLflow pods to quiesce before migration: 1 replicas remain because status.version is empty during bootstrap", "", ShortRequeue},
	{"a CronJob may start a Job, and the server runs on", factsOf(databaseUsers(1), scheduling, serverReady), "Jobs of CronJobs are running", Drain, StepNone,
		ReasonMigrationScalingDown, "Waiting for the CronJobs to be suspended before migration because", "", ShortRequeue},
	{"the server keeps running until a Job of a CronJob ends", factsOf(databaseUsers(2), cronJobRun(started)), "Jobs of CronJobs are running", Drain, StepNone,
		ReasonMigrationScalingDown, "Waiting for Job mlflow-gc-1 to end before migration, at most 2h0m0s from its start, because status.version is empty during bootstrap: pod gc", "", ShortRequeue},
	{"one that is on its way out is waited for", factsOf(cronJobRun(terminating)), "Jobs of CronJobs are running", Drain, StepNone, ReasonMigrationScalingDown, "", "", ShortRequeue},
	{"one that never started goes", factsOf(cronJobRun()), "a Job of a CronJob never started or exceeds its deadline", Drain, StepDeleteJob,
		ReasonMigrationScalingDown, "Deleted Job mlflow-gc-1, which never started, because status.version is empty during bootstrap: pod gc", "", ShortRequeue},
	{"one that hangs goes", factsOf(cronJobRun(started), cronJobOverdue), "a Job of a CronJob never started or exceeds its deadline", Drain, StepDeleteJob,
		ReasonMigrationScalingDown, "Deleted Job mlflow-gc-1, which runs for longer than 2h0m0s,", "", ShortRequeue},
	{"the server is not stopped for a Job that goes either", factsOf(cronJobRun(started), job(JobFailed, longAgo)), "the Job failed and is retried", Drain, StepDeleteJob,
		ReasonMigrationRetrying, "", "", ShortRequeue},
	{"[D14] no replica, but no controller has seen that yet", factsOf(func(f *Facts) { f.Observed.ScaledDown = false }), "pods still use the database", ScaleToZero, StepNone,
		ReasonMigrationScalingDown, "is being stopped", "", ShortRequeue},
	{"a forced migration is named while it waits", factsOf(databaseUsers(2), forced("a")), "pods still use the database", ScaleToZero, StepNone,
		ReasonForceMigrationScalingDown, "2 replicas remain because the mlflow.opendatahub.io/force-migrate annotation is present", "", ShortRequeue},
	{"the Job runs", factsOf(job(JobRunning, started), withOutcome(running)), "the Job runs", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g2 to finish because", "", JobPollInterval},
	{"[D9] the Job waits, and why", factsOf(job(JobRunning, func(j *JobState) { j.Cause = "no such image" }), withOutcome(running)), "the Job runs", ScaleToZero, StepNone,
		ReasonMigrationRunning, "because status.version is empty during bootstrap: no such image", "", JobPollInterval},
	{"a running Job becomes the forced one", factsOf(forced("a"), job(JobRunning, started), withOutcome(running, func(r *mlflowv1.MigrationStatus) { r.Force = "" })), "the Job runs", ScaleToZero, StepNone,
		ReasonForceMigrationRunning, "", running, JobPollInterval},
	{"[D8] a Job of before runs", factsOf(otherJob(started)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning,
		"Waiting for migration Job mlflow-mg-3140-g1 from a previous desired generation to finish because", "", JobPollInterval},
	{"a Job of before is on its way out", factsOf(otherJob(terminating)), "another Job is running", ScaleToZero, StepNone, ReasonMigrationRunning, "", "", ShortRequeue},
	{"[mlflow-46] bootstrap", factsOf(), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"Created migration Job mlflow-mg-3140-g2 because status.version is empty during bootstrap", running, JobPollInterval},
	{"[mlflow-56] upgrade", factsOf(withVersion("3.10.1")), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		`because status.version="3.10.1" is older than the oldest supported version 3.14.0`, running, JobPollInterval},
	{"the stores have moved", factsOf(withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })), "a Job is needed", ScaleToZero, StepCreateJob,
		ReasonMigrationRunning, "because a store URI, or the Secret that contains it, has changed since the last migration", running, JobPollInterval},
	{"mode Always", factsOf(withVersion("3.14.0"), always), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"because spec.migration.mode=Always and desired generation 2 has not completed migration yet", running, JobPollInterval},
	{"a migration that was cut short and edited away", factsOf(withVersion("3.14.0"), withOutcome(running)), "a Job is needed", ScaleToZero, StepCreateJob, ReasonMigrationRunning,
		"because an earlier migration to version 3.14.0 or newer has not been completed", running, JobPollInterval},
}

func TestMigrationRules(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range ruleCases {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.facts)
			seen[d.Rule] = true
			if d.Rule != c.rule || d.Workloads != c.serving || d.Step != c.step || d.RequeueAfter != c.retry {
				t.Errorf("rule %q, workloads %q, step %q, retry %s", d.Rule, d.Workloads, d.Step, d.RequeueAfter)
			}
			var reason, message string
			if d.Report != nil {
				reason, message = d.Report.Reason, d.Report.Message
			}
			if reason != c.reason || !strings.Contains(message, c.message) {
				t.Errorf("report %s: %s", reason, message)
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
			t.Errorf("no case shows the rule %q", rule.name)
		}
	}
}

// The image reports its version of MLflow. Without the pod of the Job, no version is recorded.
func TestMigratedRecord(t *testing.T) {
	reported := func(j *JobState) {
		j.ImageReport = resources.ImageReport{MLflow: "3.18.0", Schema: "new", Database: "new"}
	}
	for name, c := range map[string]struct {
		facts   *Facts
		version string
	}{
		"reported":            {factsOf(job(JobSucceeded, reported), withOutcome(running)), "3.18.0"},
		"reported, and older": {factsOf(withVersion("3.18.1"), always, job(JobSucceeded, reported), withOutcome(running)), "3.18.0"},
		"not reported":        {factsOf(job(JobSucceeded), withOutcome(running)), "3.14.0"},
		"version not reported, newer one recorded": {factsOf(withVersion("3.18.1"), always, job(JobSucceeded), withOutcome(running)), "3.18.1"},
		"by a check": {upgrade(exchanged, check(JobSucceeded, reportedSchema("new", "new"))), "3.18.0"},
	} {
		r := Decide(c.facts).Record
		if r == nil || r.Outcome != pending || r.Version != c.version {
			t.Errorf("%s: got record %+v, want a pending one with the expected version", name, r)
		}
	}
}

// TestMigrationRuleOrder shows that the position of each rule matters: for each rule there are facts that match it and a
// later rule, and it decides.
func TestMigrationRuleOrder(t *testing.T) {
	last := len(migrationRules) - 1
	if !migrationRules[last].when(&Facts{}) {
		t.Errorf("rule %q does not fit always", migrationRules[last].name)
	}
	look := slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.name == "the workloads were not observed" })
	for i, rule := range migrationRules[:last] {
		precedes := slices.ContainsFunc(ruleCases, func(c ruleCase) bool {
			return c.rule == rule.name && slices.ContainsFunc(migrationRules[i+1:], func(later migrationRule) bool {
				needsNoLook := slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.name == later.name }) <= look
				return (c.facts.Observed != nil || needsNoLook || later.name == migrationRules[last].name) && later.when(c.facts)
			})
		})
		if !precedes {
			t.Errorf("rule %q could stand anywhere", rule.name)
		}
	}
}
