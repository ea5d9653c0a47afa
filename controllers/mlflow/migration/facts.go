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

// ForceAnnotation on an MLflow, with any value, requests one migration.
const ForceAnnotation = "mlflow.opendatahub.io/force-migrate"

// Facts holds the inputs of the rules.
type Facts struct {
	Now        time.Time
	Generation int64
	// Supported is the oldest MLflow version that this build supports, Recorded is status.version.
	Supported, Recorded string
	// Always is true if spec.migration.mode requests one migration in each generation.
	Always bool
	// Force is the hash of the value of ForceAnnotation, or empty.
	Force string
	// Image is the desired image, Stores the hash of the desired stores.
	Image, Stores string
	// Condition is the last condition Migration, or nil.
	Condition *metav1.Condition
	// Record is status.migration.
	Record mlflowv1.MigrationStatus
	// JobName is the name of the Job for version and generation.
	JobName string
	// Observed is the state of the cluster, or nil until StepObserve is executed.
	Observed *Workloads
}

// Workloads is the observed state of the Deployments, Jobs and CronJobs of an MLflow.
type Workloads struct {
	// Job is the Job named Facts.JobName that the MLflow controls, or nil.
	Job *JobState
	// OtherJobs holds the unfinished migration Jobs with other names, and the orphaned migration Jobs of a deleted MLflow: unfinished ones
	// of any name, and a finished one named Facts.JobName.
	OtherJobs []JobState
	// ServerEnabled is true if the Deployment of the tracking server is controlled by the MLflow, desires replicas and is not terminating.
	ServerEnabled bool
	// Check is the Job that tests image and databases before the server is stopped, or nil.
	Check *JobState
	// CronJobsActive is true if a CronJob is not suspended and may create a Job.
	CronJobsActive bool
	// CronJobRuns holds the unfinished Jobs of the CronJobs.
	CronJobRuns []JobState
	// ServerReady is true if the tracking server has replicas and its rollout is complete.
	ServerReady bool
	// DatabaseUsers counts replicas and pods that may use the database; UserPodsText describes some of the pods.
	DatabaseUsers int32
	UserPodsText  string
	// UsersPerServerText lists the servers with users and their numbers, if there is an artifacts server.
	UsersPerServerText string
	// ScaledDown is true if the Deployment controller has observed zero desired replicas for every Deployment: no pod can be created.
	ScaledDown bool
}

// CronJobsBusy reports whether a Job of a CronJob uses the database or may do so later.
func (w *Workloads) CronJobsBusy() bool { return w.CronJobsActive || len(w.CronJobRuns) > 0 }

// DatabaseIdle reports whether no pod of the servers and CronJobs uses the database or can do so later.
func (w *Workloads) DatabaseIdle() bool {
	return w.ScaledDown && w.DatabaseUsers == 0 && !w.CronJobsBusy()
}

// jobPhase is the phase of a Job. A Job with only the condition FailureTarget is still running.
type jobPhase string

// The phases of a Job.
const (
	JobRunning   jobPhase = "running"
	JobSucceeded jobPhase = "succeeded"
	JobFailed    jobPhase = "failed"
)

// JobState is the state of a migration Job, a check Job or a Job of a CronJob.
type JobState struct {
	Name  string
	UID   types.UID
	Phase jobPhase
	// Managed is true if the Job has the operator label, so that it is watched. Jobs of CronJobs and of the legacy operator do not have it.
	Managed bool
	// Orphaned is true if the Job belonged to a deleted MLflow of the same name. Without an owner reference such a Job causes no event.
	Orphaned bool
	// Terminating is true if the Job has a deletionTimestamp.
	Terminating bool
	// RequestHash identifies the request: the hash of ForceAnnotation, or of the migration that a check Job tests.
	RequestHash string
	// Image is the image of the Job; ImageReport and ExitCode are the result of its program.
	Image       string
	ImageReport resources.ImageReport
	ExitCode    int32
	// Started is true if a pod of the unfinished Job has started the program. Failed pods of a migration Job do not count.
	Started bool
	// StartedAt is the creation time of the Job. For a Job of a CronJob it is status.startTime, if that is set.
	StartedAt time.Time
	FailedAt  time.Time
	Failure   Failure
	// Cause is why the pods of the Job do not run or the last attempt failed, or empty. For a Job of a CronJob it also names the pods.
	Cause string
}

// inProgress reports whether the Job is unfinished and has started its program.
func (j *JobState) inProgress() bool { return j.Started && j.Phase == JobRunning }

// FactsOf returns the facts that the MLflow and the inputs contain.
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

// requested reports whether a migration is requested. Like the legacy operator it evaluates the annotation, status.version, the
// condition of this generation and the mode. It also evaluates the record, which survives a change of the generation.
func (f *Facts) requested() bool {
	switch {
	case f.Force != "", f.Recorded == "", olderVersion(f.Recorded, f.Supported):
		return true
	case f.Record.Outcome != "" && f.Record.Outcome != mlflowv1.MigrationCompleted, f.storesChanged(), f.imageChanged():
		return true
	case f.isConditionCurrent():
		return f.Condition.Status != metav1.ConditionTrue && (f.Always || f.Condition.Reason != ReasonDowngradeRefused)
	default:
		return f.Always
	}
}

// storesChanged reports whether the last migration was completed with other stores.
func (f *Facts) storesChanged() bool {
	return f.Record.Outcome == mlflowv1.MigrationCompleted && f.Record.Stores != "" && f.Record.Stores != f.Stores
}

// imageChanged reports whether the last migration succeeded with another image.
func (f *Facts) imageChanged() bool {
	succeeded := f.Record.Outcome != mlflowv1.MigrationRunning && f.Record.Outcome != mlflowv1.MigrationFailed
	return succeeded && f.Record.Image != "" && f.Record.Image != f.Image
}

// isConditionCurrent reports whether the condition is of the current generation.
func (f *Facts) isConditionCurrent() bool {
	return f.Condition != nil && f.Condition.ObservedGeneration == f.Generation
}

// hasReason reports whether the last condition, of any generation, has the reason.
func (f *Facts) hasReason(reason string) bool {
	return f.Condition != nil && f.Condition.Reason == reason
}

// rolloutPending reports whether the requested migration is done, and only the rollout of the server is not.
func (f *Facts) rolloutPending() bool {
	r := &f.Record
	return r.Outcome == mlflowv1.MigrationRolloutPending && r.Version != "" && !olderVersion(r.Version, f.Supported) && r.Image == f.Image && r.Stores == f.Stores &&
		(f.Force == "" || f.Force == r.Force) && (!f.Always || r.Generation == f.Generation)
}

// failureHolds reports whether the recorded failure is of the current version, image and stores.
func (f *Facts) failureHolds() bool {
	r := &f.Record
	return r.Outcome == mlflowv1.MigrationFailed && r.Version == f.Supported && r.Image == f.Image && r.Stores == f.Stores
}

// hasLegacyFailure reports whether the condition is a failure of the legacy operator, which wrote no record.
func (f *Facts) hasLegacyFailure() bool {
	return f.Record.Outcome == "" && f.hasReason(ReasonMigrationFailed)
}

// satisfiesRequest reports whether a finished Job is the requested migration. If imageChanged, the Job must have the new image. With the
// force annotation, the Job must match the annotation: by the hash, or without a hash by the reason of the condition, as in the legacy
// operator. A Job that the record names then counts only during the rollout.
func (f *Facts) satisfiesRequest(j *JobState) bool {
	recorded := string(j.UID) == f.Record.JobUID
	switch {
	case f.imageChanged() && j.Image != f.Image:
		return false
	case f.Force == "":
		return true
	case recorded && f.Record.Outcome != mlflowv1.MigrationRolloutPending:
		return false
	case j.RequestHash != "":
		return j.RequestHash == f.Force
	default:
		return f.isConditionCurrent() && (f.Record.Force == "" || f.Record.Force == f.Force) &&
			(f.hasReason(ReasonForceMigrationRunning) || f.hasReason(ReasonForceMigrationScalingDown))
	}
}

// newRecord returns a record of the current inputs.
func (f *Facts) newRecord(outcome mlflowv1.MigrationOutcome, job types.UID) *mlflowv1.MigrationStatus {
	return &mlflowv1.MigrationStatus{
		Outcome: outcome, JobUID: string(job), Generation: f.Generation,
		Version: f.Supported, Image: f.Image, Stores: f.Stores, Force: f.Force,
	}
}

// takeOverRecord returns the record of an MLflow that the legacy operator migrated, which recorded only status.version: the next change of
// image or stores requests a migration. It returns nil if there is a record, or if the legacy operator failed.
func (f *Facts) takeOverRecord() *mlflowv1.MigrationStatus {
	if f.Record.Outcome != "" || f.hasLegacyFailure() {
		return nil
	}
	r := f.newRecord(mlflowv1.MigrationCompleted, "")
	r.Version = f.Recorded
	return r
}

// newSuccessRecord returns the record of a migrated database. The version is the one in the report, or else the newer of Supported and
// Recorded.
func (f *Facts) newSuccessRecord(report resources.ImageReport, job types.UID) *mlflowv1.MigrationStatus {
	r := f.newRecord(mlflowv1.MigrationRolloutPending, job)
	if olderVersion(r.Version, f.Recorded) {
		r.Version = f.Recorded
	}
	if report.MLflow != "" {
		r.Version = report.MLflow
	}
	return r
}

// trigger returns why a migration is requested, for messages of the form "<action> because <trigger>".
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
		return "the image differs from the image that migrated the database"
	case f.storesChanged():
		return "a store URI, or the Secret that contains it, has changed since the last migration"
	default:
		return fmt.Sprintf("an earlier migration to version %s or newer has not been completed", f.Supported)
	}
}

// olderVersion reports whether a is a semantic version older than b.
func olderVersion(a, b string) bool {
	first, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	order, err := first.Compare(b)
	return err == nil && order < 0
}
