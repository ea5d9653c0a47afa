package mlflow

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// Every function here is the consequence of one rule of migrationRules.

const (
	hintForce = ". After fixing the issue, add the " + forceAnnotation + " annotation to the MLflow resource to force a rerun."
	hintRetry = " If you want to rerun immediately after fixing the issue, add the " + forceAnnotation + " annotation."
)

func refuseDowngrade(f *migrationFacts) migrationDecision {
	newest := f.newestKnown()
	return migrationDecision{Workloads: leaveAlone, Report: &migrationReport{
		Status: metav1.ConditionFalse, Reason: ReasonDowngradeRefused,
		Message: fmt.Sprintf("The database was migrated to MLflow %s, and this operator supports %s, which cannot read a newer schema; "+
			"server and CronJobs are left as they are. Run an operator that supports %s or newer, or restore a backup made with %s and add the %s annotation",
			newest, f.Supported, newest, f.Supported, forceAnnotation),
	}}
}

func forgetDowngrade(f *migrationFacts) migrationDecision {
	return migrationDecision{Workloads: serve, Report: succeeded(f.Generation)}
}

func awaitRollout(f *migrationFacts) migrationDecision {
	return migrationDecision{Workloads: serve, Report: &migrationReport{
		Status: metav1.ConditionUnknown, Reason: f.reason(ReasonMigrationRunning),
		Message: fmt.Sprintf("The database is migrated to version %s; waiting for the server to become ready", f.Supported),
	}}
}

// keepFailure says again what was said, for the present generation.
func keepFailure(f *migrationFacts) migrationDecision {
	text := fmt.Sprintf("The migration to version %s failed", f.Supported) + hintForce
	if f.reasonIs(ReasonMigrationFailed) {
		text = f.Condition.Message
	}
	return failedWith(text)
}

func adoptFailure(f *migrationFacts) migrationDecision {
	d := failedWith(f.Condition.Message)
	d.Record = f.record(mlflowv1.MigrationFailed, "")
	return d
}

func awaitDeletion(f *migrationFacts) migrationDecision {
	return holding(f, ReasonMigrationRunning, f.because("Waiting for migration Job %s to be gone", f.Live.Job.Name), recreateDelay)
}

func restartForced(f *migrationFacts) migrationDecision {
	how := "completed"
	if f.failed() {
		how = "failed"
	}
	return removing(f, f.Live.Job, ReasonForceMigrationRestart, f.because(
		"Deleted %s migration Job %s so the force-migrate annotation can create a fresh Job with the same generated name", how, f.Live.Job.Name))
}

func rerunChanged(f *migrationFacts) migrationDecision {
	return removing(f, f.Live.Job, ReasonMigrationRunning, f.because("Deleted failed migration Job %s, since image, version or stores have changed,", f.Live.Job.Name))
}

// consumeForce takes the annotation away before the failure is recorded: when that is cut short, the failed Job without
// an annotation says the same. Adding the annotation again asks for another migration then, as the message has it.
func consumeForce(*migrationFacts) migrationDecision {
	return migrationDecision{Workloads: standDown, Step: stepUnmark, Retry: recreateDelay}
}

func recordFailure(f *migrationFacts) migrationDecision {
	d := failedWith(f.Live.Job.Failure.Message + hintForce)
	d.Record = f.record(mlflowv1.MigrationFailed, f.Live.Job.UID)
	return d
}

func postponeRetry(f *migrationFacts) migrationDecision {
	at := f.retryAt()
	return holding(f, ReasonMigrationRetrying, retrying(f, at), max(at.Sub(f.Now), time.Second))
}

func retryJob(f *migrationFacts) migrationDecision {
	d := removing(f, f.Live.Job, ReasonMigrationRetrying, retrying(f, f.Now.Add(recreateDelay)))
	d.Retry = recreateDelay
	return d
}

func retrying(f *migrationFacts, at time.Time) string {
	return f.Live.Job.Failure.Message + " Retrying automatically after " + at.UTC().Format(time.RFC3339) + "." + hintRetry
}

// recordSuccess lets the server come back; it is a success for users when that is ready.
func recordSuccess(f *migrationFacts) migrationDecision {
	d := awaitRollout(f)
	d.Record = f.record(mlflowv1.MigrationRolloutPending, f.Live.Job.UID)
	return d
}

func replaceJob(f *migrationFacts) migrationDecision {
	reason := ReasonMigrationRunning
	if f.Force != "" {
		reason = ReasonForceMigrationRestart
	}
	return removing(f, f.Live.Job, reason, f.because("Deleted migration Job %s, which never started, to make it anew", f.Live.Job.Name))
}

// removeLeftover makes room for a Job of this MLflow. The other one proves nothing about the stores of this one, and a
// migration that has nothing to do is a matter of seconds.
func removeLeftover(f *migrationFacts) migrationDecision {
	left := f.Live.Leftover
	if left.Leaving {
		return holding(f, ReasonMigrationRunning, f.because("Waiting for migration Job %s of an earlier MLflow to be gone", left.Name), recreateDelay)
	}
	return removing(f, left, ReasonMigrationRunning, f.because("Deleted finished migration Job %s of an earlier MLflow", left.Name))
}

func removeOther(f *migrationFacts) migrationDecision {
	other := f.idleOther()
	return removing(f, other, ReasonMigrationRunning, f.because("Deleted migration Job %s, which never started,", other.origin()))
}

// origin names a Job that is not the one wanted, and where it comes from.
func (j *migrationJobState) origin() string {
	if j.Left {
		return j.Name + " of an earlier MLflow"
	}
	return j.Name + " from a previous desired generation"
}

// endChore makes room: garbage collection and archival go on where they were with their next run.
func endChore(f *migrationFacts) migrationDecision {
	c := f.endable()
	why := "never started"
	if c.Started {
		why = fmt.Sprintf("runs for longer than %s", choreDeadline*time.Second)
	}
	return removing(f, &c.migrationJobState, ReasonMigrationScalingDown,
		withCause(f.because("Deleted Job %s, which %s,", c.Name, why), c.Pods))
}

func awaitChores(f *migrationFacts) migrationDecision {
	text := f.because("Waiting for the CronJobs to be suspended before migration")
	if len(f.Live.Chores) > 0 {
		c := &f.Live.Chores[0]
		text = withCause(f.because("Waiting for Job %s to end before migration, at most %s from its start,", c.Name, choreDeadline*time.Second), c.Pods)
	}
	return holding(f, ReasonMigrationScalingDown, text, drainDelay)
}

func awaitQuiet(f *migrationFacts) migrationDecision {
	text := f.because("Waiting for MLflow pods to quiesce before migration: %d replicas remain", f.Live.Busy)
	if f.Live.Busy == 0 {
		text = f.because("Waiting for MLflow pods to quiesce before migration: the Deployment is being stopped")
	}
	return holding(f, ReasonMigrationScalingDown, withCause(text, f.Live.Users), drainDelay)
}

// awaitJob also makes a Job that runs already the one of an annotation that came later.
func awaitJob(f *migrationFacts) migrationDecision {
	d := holding(f, ReasonMigrationRunning, withCause(f.because("Waiting for migration Job %s to finish", f.Live.Job.Name), f.Live.Job.Cause), watchDelay)
	if f.Record.Outcome != mlflowv1.MigrationRunning || f.Record.Force != f.Force {
		d.Record = f.record(mlflowv1.MigrationRunning, "")
	}
	return d
}

func awaitOther(f *migrationFacts) migrationDecision {
	other := &f.Live.Others[0]
	retry := watchDelay
	if other.Leaving {
		retry = recreateDelay
	}
	return holding(f, ReasonMigrationRunning, withCause(
		f.because("Waiting for migration Job %s to finish", other.origin()), other.Cause), retry)
}

func createJob(f *migrationFacts) migrationDecision {
	d := holding(f, ReasonMigrationRunning, f.because("Created migration Job %s", f.JobName), watchDelay)
	d.Step, d.Record = stepCreate, f.record(mlflowv1.MigrationRunning, "")
	return d
}

func holding(f *migrationFacts, reason, message string, retry time.Duration) migrationDecision {
	return migrationDecision{Workloads: standDown, Retry: retry, Report: &migrationReport{
		Status: metav1.ConditionUnknown, Reason: f.reason(reason), Message: message, Progressing: true,
	}}
}

func removing(f *migrationFacts, j *migrationJobState, reason, message string) migrationDecision {
	d := holding(f, reason, message, untilEvent(j))
	d.Step, d.Job = stepDelete, j
	return d
}

func failedWith(message string) migrationDecision {
	return migrationDecision{Workloads: standDown, Report: &migrationReport{
		Status: metav1.ConditionFalse, Reason: ReasonMigrationFailed, Message: message,
	}}
}

// reason is the one for a forced migration where there is one.
func (f *migrationFacts) reason(plain string) string {
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

func withCause(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}
