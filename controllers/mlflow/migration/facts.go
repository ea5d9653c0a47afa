package migration

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// ForceAnnotation on an MLflow asks for one migration, whatever its value.
const ForceAnnotation = "mlflow.opendatahub.io/force-migrate"

// Facts is all that decides about a migration.
type Facts struct {
	Now        time.Time
	Generation int64
	// Supported is the oldest version that this build takes, Recorded that of status.version.
	Supported, Recorded string
	// Always: the mode asks for one migration in each generation.
	Always bool
	// Force stands for the value of the annotation; empty without one.
	Force string
	// Image and Stores are what a Job made now would run and migrate.
	Image, Stores string
	// Condition is the last one of type Migration; nil when there is none.
	Condition *metav1.Condition
	// Record is what earlier reconciles wrote down.
	Record mlflowv1.MigrationStatus
	// JobName is the name of the Job for version and generation.
	JobName string
	// Live is what only the API server knows; nil before it was asked.
	Observed *Workloads
}

// Workloads is what runs in the cluster.
type Workloads struct {
	// Job is the one with the current name; nil when there is none.
	Job *JobState
	// Others are the unfinished Jobs of this MLflow with other names, and those that an earlier MLflow left: unfinished ones of any
	// name, and a finished one of the current name.
	OtherJobs []JobState
	// Runs: the server is meant to run, and was not stopped.
	ServerEnabled bool
	// Check is the Job that tries image and databases before the server is stopped; nil when there is none.
	Check *JobState
	// Scheduling: a CronJob is not suspended, so that another of its Jobs can follow.
	CronJobsActive bool
	// Chores are the unfinished Jobs of the CronJobs; the cause of each names its pods, with what keeps them.
	CronJobRuns []JobState
	// Serving: the server is rolled out and ready.
	ServerReady bool
	// Busy counts replicas and pods that may use the database; Users names some of the pods, with what keeps them.
	DatabaseUsers int32
	UserPods      string
	// Counts says how busy each of the servers is, where artifacts have one of their own.
	UsersPerServer string
	// Settled: the Deployment is observed to be off, so that no pod can follow.
	ScaledDown bool
}

// Working reports that a Job beside the server uses the database, or that one can follow.
func (w *Workloads) CronJobsBusy() bool { return w.CronJobsActive || len(w.CronJobRuns) > 0 }

// Quiet reports that nothing uses the database and nothing will.
func (w *Workloads) DatabaseIdle() bool {
	return w.ScaledDown && w.DatabaseUsers == 0 && !w.CronJobsBusy()
}

// jobPhase is how far a Job is. A Job that only announces its failure is still running.
type jobPhase string

// The phases of a Job.
const (
	JobRunning   jobPhase = "running"
	JobSucceeded jobPhase = "succeeded"
	JobFailed    jobPhase = "failed"
)

// JobState is a Job that migrates, that tries image and databases first, or that works beside the server.
type JobState struct {
	Name  string
	UID   types.UID
	Phase jobPhase
	// Ours distinguishes our Jobs, whose events reach us, from those that the original operator made.
	Managed bool
	// Left: an earlier MLflow of this name left it, so that nothing reports what becomes of it.
	Orphaned bool
	// Leaving: it is being deleted.
	Terminating bool
	// For is what it was made for: the annotation that forced a migration, empty when none did; or the migration that it checks.
	RequestHash string
	// Image that it runs, and what its program found in it; Code is how that ended.
	Image       string
	ImageReport resources.ImageReport
	ExitCode    int32
	// Started: its program runs or has just ended.
	Started bool
	// Since is when it was made, or began.
	StartedAt time.Time
	// FailedAt and Failure say how it failed.
	FailedAt time.Time
	Failure  Failure
	// Cause is why its pod does not run; empty when nothing is known.
	Cause string
}

// works reports that the program of an unfinished Job runs.
func (j *JobState) isRunningProgram() bool { return j.Started && j.Phase == JobRunning }

// FactsOf collects what the object itself says.
func FactsOf(m *mlflowv1.MLflow, in resources.Inputs, now time.Time) Facts {
	f := Facts{
		Now:        now,
		Generation: m.Generation,
		Supported:  in.Version,
		Recorded:   m.Status.Version,
		Always:     m.Spec.Migration != nil && m.Spec.Migration.Mode == mlflowv1.MigrateAlways,
		Image:      resources.ImageOf(m, in),
		Stores:     resources.StoresHash(m),
		JobName:    resources.MigrationJobName(m, in),
		Condition:  meta.FindStatusCondition(m.Status.Conditions, ConditionMigration).DeepCopy(),
	}
	if text, present := m.Annotations[ForceAnnotation]; present {
		f.Force = resources.ShortHash(text)
	}
	if m.Status.Migration != nil {
		f.Record = *m.Status.Migration
	}
	return f
}

// requested follows the reference: annotation, a version that is too old, a condition of this generation that is not true, mode. Our own
// record of something unfinished counts too, because the others forget it when the object is edited.
func (f *Facts) requested() bool {
	switch {
	case f.Force != "", f.Recorded == "", olderVersion(f.Recorded, f.Supported):
		return true
	case f.Record.Outcome != "" && f.Record.Outcome != mlflowv1.MigrationCompleted, f.storesChanged(), f.imageChanged():
		return true
	case f.isConditionCurrent():
		return f.Condition.Status != metav1.ConditionTrue && f.Condition.Reason != ReasonDowngradeRefused
	default:
		return f.Always
	}
}

// moved reports that what was migrated is not what the server would use now.
func (f *Facts) storesChanged() bool {
	return f.Record.Outcome == mlflowv1.MigrationCompleted && f.Record.Stores != "" && f.Record.Stores != f.Stores
}

// exchanged reports that the image is another than the one that migrated.
func (f *Facts) imageChanged() bool {
	settled := f.Record.Outcome != mlflowv1.MigrationRunning && f.Record.Outcome != mlflowv1.MigrationFailed
	return settled && f.Record.Image != "" && f.Record.Image != f.Image
}

// currentCondition reports that the condition is about the present generation.
func (f *Facts) isConditionCurrent() bool {
	return f.Condition != nil && f.Condition.ObservedGeneration == f.Generation
}

// reasonIs compares with the reason of the last condition, of any generation.
func (f *Facts) hasReason(reason string) bool {
	return f.Condition != nil && f.Condition.Reason == reason
}

// rolloutPending reports that a Job has migrated what would be migrated now, and that only the server has to follow.
func (f *Facts) rolloutPending() bool {
	r := &f.Record
	return r.Outcome == mlflowv1.MigrationRolloutPending && r.Version != "" && !olderVersion(r.Version, f.Supported) && r.Image == f.Image && r.Stores == f.Stores &&
		(f.Force == "" || f.Force == r.Force) && (!f.Always || r.Generation == f.Generation)
}

// failureHolds reports that the recorded failure is about what would be migrated now.
func (f *Facts) failureHolds() bool {
	r := &f.Record
	return r.Outcome == mlflowv1.MigrationFailed && r.Version == f.Supported && r.Image == f.Image && r.Stores == f.Stores
}

// failedBefore reports a failure that the original operator recorded, which wrote nothing but the condition.
func (f *Facts) hasLegacyFailure() bool {
	return f.Record.Outcome == "" && f.hasReason(ReasonMigrationFailed)
}

// counts reports that a Job is the one which was requested: it ran the image. A forced migration is requested once: a Job of before the annotation does not count, nor one whose end has led to
// something already. Jobs that carry no mark count when the condition says that they were taken for the forced one, as the original
// operator does.
func (f *Facts) satisfiesRequest(j *JobState) bool {
	known := string(j.UID) == f.Record.JobUID
	switch {
	case f.imageChanged() && j.Image != f.Image:
		return false
	case f.Force == "":
		return true
	case known && f.Record.Outcome != mlflowv1.MigrationRolloutPending:
		return false
	case j.RequestHash != "":
		return j.RequestHash == f.Force
	default:
		return f.isConditionCurrent() && (f.Record.Force == "" || f.Record.Force == f.Force) &&
			(f.hasReason(ReasonForceMigrationRunning) || f.hasReason(ReasonForceMigrationScalingDown))
	}
}

// record is what to write down about the present inputs.
func (f *Facts) newRecord(outcome mlflowv1.MigrationOutcome, job types.UID) *mlflowv1.MigrationStatus {
	return &mlflowv1.MigrationStatus{
		Outcome: outcome, JobUID: string(job), Generation: f.Generation,
		Version: f.Supported, Image: f.Image, Stores: f.Stores, Force: f.Force,
	}
}

// migrated is the record of a database that has the schema of the image, as a Job found it. Without the pod of the Job no more is known
// than what the Job demanded, or had been there before.
func (f *Facts) newSuccessRecord(found resources.ImageReport, job types.UID) *mlflowv1.MigrationStatus {
	r := f.newRecord(mlflowv1.MigrationRolloutPending, job)
	if olderVersion(r.Version, f.Recorded) {
		r.Version = f.Recorded
	}
	if found.MLflow != "" {
		r.Version = found.MLflow
	}
	return r
}

// trigger says why there is a migration, for messages: "<action> because <trigger>".
func (f *Facts) trigger() string {
	switch {
	case f.Force != "":
		return "the " + ForceAnnotation + " annotation is present"
	case f.Always:
		return fmt.Sprintf("spec.migration.mode=Always and desired generation %d has not completed migration yet", f.Generation)
	case f.Recorded == "":
		return "status.version is empty during bootstrap"
	case olderVersion(f.Recorded, f.Supported):
		return fmt.Sprintf("status.version=%q is older than the oldest supported version %s", f.Recorded, f.Supported)
	case f.imageChanged():
		return "the image is another than the one that migrated the database"
	case f.storesChanged():
		return "the stores are others than those that were migrated"
	default:
		return fmt.Sprintf("an earlier migration to version %s or newer has not been completed", f.Supported)
	}
}

// olderVersion reports that a is a semantic version older than b. What is no semantic version is not older.
func olderVersion(a, b string) bool {
	first, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	order, err := first.Compare(b)
	return err == nil && order < 0
}
