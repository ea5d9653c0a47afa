package migration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// Every function here is the consequence of one rule of migrationRules.

const (
	hintForce = ". After fixing the issue, add the " + ForceAnnotation + " annotation to the MLflow resource to force a rerun."
	hintRetry = " If you want to rerun immediately after fixing the issue, add the " + ForceAnnotation + " annotation."
)

// resume ends what a request that is gone has said of a server that was kept as it was.
func resume(f *Facts) Decision {
	d := Decision{Workloads: RunAsSpecified}
	if f.Condition != nil && KeepsServer(f.Condition.Reason) {
		d.Report = Succeeded(f.Generation)
	}
	return d
}

// Succeeded is the report of a migration that is done.
func Succeeded(generation int64) *Report {
	return &Report{
		Status: metav1.ConditionTrue, Reason: ReasonMigrationSucceeded,
		Message: fmt.Sprintf("Migration for generation %d completed successfully", generation),
	}
}

func awaitRollout(f *Facts) Decision { return rollsOut(f, f.Record.Version) }

func rollsOut(f *Facts, version string) Decision {
	return Decision{Workloads: RunAsSpecified, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: f.reason(ReasonMigrationRunning),
		Message: fmt.Sprintf("The database is migrated to version %s; waiting for the server to become ready", version),
	}}
}

// keepFailure says again what was said, for the present generation, and records what the original left in a condition alone.
func keepFailure(f *Facts) Decision {
	text := fmt.Sprintf("The migration to version %s or newer failed", f.Supported) + hintForce
	if f.reasonIs(ReasonMigrationFailed) {
		text = f.Condition.Message
	}
	d := failedWith(text)
	if f.failedBefore() {
		d.Record = f.record(mlflowv1.MigrationFailed, "")
	}
	return d
}

func awaitDeletion(f *Facts) Decision {
	return holding(f, ReasonMigrationRunning, f.because("Waiting for migration Job %s to be gone", f.Live.Job.Name), RecreateDelay)
}

func restart(f *Facts) Decision {
	how := "completed"
	if f.failed() {
		how = "failed"
	}
	if f.Force == "" {
		return removing(f, f.Live.Job, ReasonMigrationRunning, f.because("Deleted %s migration Job %s to create it again", how, f.Live.Job.Name))
	}
	return removing(f, f.Live.Job, ReasonForceMigrationRestart, f.because(
		"Deleted %s migration Job %s so the force-migrate annotation can create a fresh Job with the same generated name", how, f.Live.Job.Name))
}

func rerunChanged(f *Facts) Decision {
	return removing(f, f.Live.Job, ReasonMigrationRunning, f.because("Deleted failed migration Job %s, since image, version or stores have changed,", f.Live.Job.Name))
}

// recordFailure takes an annotation away before it records the failure: when that is cut short, the failed Job without an annotation
// says the same. Adding the annotation again asks for another migration then, as the message has it.
func recordFailure(f *Facts) Decision {
	if f.Force != "" {
		return Decision{Workloads: ScaleToZero, Step: StepUnmark, Retry: RecreateDelay}
	}
	d := failedWith(f.Live.Job.Failure.Message + hintForce)
	d.Record = f.record(mlflowv1.MigrationFailed, f.Live.Job.UID)
	return d
}

// retryJob makes room for another Job, after a pause.
func retryJob(f *Facts) Decision {
	if at := f.Live.Job.FailedAt.Add(retryDelay); f.Now.Before(at) {
		return holding(f, ReasonMigrationRetrying, retrying(f, at), max(at.Sub(f.Now), time.Second))
	}
	d := removing(f, f.Live.Job, ReasonMigrationRetrying, retrying(f, f.Now.Add(RecreateDelay)))
	d.Retry = RecreateDelay
	return d
}

func retrying(f *Facts, at time.Time) string {
	return f.Live.Job.Failure.Message + " Retrying automatically after " + at.UTC().Format(time.RFC3339) + "." + hintRetry
}

// recordSuccess lets the server come back; it is a success for users when that is ready.
func recordSuccess(f *Facts) Decision {
	return follow(f, f.migrated(f.Live.Job.Found, f.Live.Job.UID))
}

func follow(f *Facts, r *mlflowv1.MigrationStatus) Decision {
	d := rollsOut(f, r.Version)
	d.Record = r
	return d
}

func replaceJob(f *Facts) Decision {
	reason := ReasonMigrationRunning
	if f.Force != "" {
		reason = ReasonForceMigrationRestart
	}
	return removing(f, f.Live.Job, reason, f.because("Deleted migration Job %s, which never started, to create it again", f.Live.Job.Name))
}

// removeOther makes room for a Job of ours. A finished one of an earlier MLflow proves nothing about the stores of this one, and a
// migration that has nothing to do is a matter of seconds.
func removeOther(f *Facts) Decision {
	other := f.idleOther()
	text := f.because("Deleted migration Job %s, which never started,", other.origin())
	if other.Phase != JobRunning {
		text = f.because("Deleted finished migration Job %s", other.origin())
	}
	return removing(f, other, ReasonMigrationRunning, text)
}

// origin names a Job that is not the one wanted, and where it comes from.
func (j *JobState) origin() string {
	if j.Left {
		return j.Name + " of an earlier MLflow"
	}
	return j.Name + " from a previous desired generation"
}

// endChore makes room: garbage collection and archival continue where they were with their next run.
func endChore(f *Facts) Decision {
	c := f.endable()
	why := "never started"
	if c.Started {
		why = fmt.Sprintf("runs for longer than %s", choreDeadline)
	}
	return removing(f, c, ReasonMigrationScalingDown,
		WithCause(f.because("Deleted Job %s, which %s,", c.Name, why), c.Cause))
}

func awaitChores(f *Facts) Decision {
	text := f.because("Waiting for the CronJobs to be suspended before migration")
	if len(f.Live.Chores) > 0 {
		c := &f.Live.Chores[0]
		text = WithCause(f.because("Waiting for Job %s to end before migration, at most %s from its start,", c.Name, choreDeadline), c.Cause)
	}
	return holding(f, ReasonMigrationScalingDown, text, RecreateDelay)
}

func awaitQuiet(f *Facts) Decision {
	text := f.because("Waiting for MLflow pods to quiesce before migration: %d replicas remain", f.Live.Busy)
	if f.Live.Counts != "" {
		text = f.because("Waiting for MLflow pods to quiesce before migration: %s", f.Live.Counts)
	}
	if f.Live.Busy == 0 {
		text = f.because("Waiting for MLflow pods to quiesce before migration: the Deployment is being stopped")
	}
	return holding(f, ReasonMigrationScalingDown, WithCause(text, f.Live.Users), RecreateDelay)
}

// awaitJob also makes a Job that runs already the one of an annotation that came later.
func awaitJob(f *Facts) Decision {
	d := holding(f, ReasonMigrationRunning, WithCause(f.because("Waiting for migration Job %s to finish", f.Live.Job.Name), f.Live.Job.Cause), WatchDelay)
	if f.Record.Outcome != mlflowv1.MigrationRunning || f.Record.Force != f.Force {
		d.Record = f.record(mlflowv1.MigrationRunning, "")
	}
	return d
}

func awaitOther(f *Facts) Decision {
	other := &f.Live.Others[0]
	until, retry := "finish", WatchDelay
	if other.Leaving {
		until, retry = "be gone", RecreateDelay
	}
	text := f.because("Waiting for migration Job %s to %s", other.origin(), until)
	return holding(f, ReasonMigrationRunning, WithCause(text, other.Cause), retry)
}

func createJob(f *Facts) Decision {
	d := holding(f, ReasonMigrationRunning, f.because("Created migration Job %s", f.JobName), WatchDelay)
	d.Step, d.Record = StepCreate, f.record(mlflowv1.MigrationRunning, "")
	return d
}

func holding(f *Facts, reason, message string, retry time.Duration) Decision {
	return Decision{Workloads: ScaleToZero, Retry: retry, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: f.reason(reason), Message: message, Progressing: true,
	}}
}

func removing(f *Facts, j *JobState, reason, message string) Decision {
	d := holding(f, reason, message, untilEvent(j))
	d.Step, d.Job = StepDelete, j
	return d
}

func failedWith(message string) Decision {
	return Decision{Workloads: ScaleToZero, Report: &Report{
		Status: metav1.ConditionFalse, Reason: ReasonMigrationFailed, Message: message,
	}}
}

// reason is the one for a forced migration where there is one.
func (f *Facts) reason(plain string) string {
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

// WithCause appends the cause of a failure to a text, if there is one.
func WithCause(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}
