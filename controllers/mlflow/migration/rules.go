package migration

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// What the workloads of the server shall do.
type workloadMode string

const (
	// RunAsSpecified is what the spec says.
	RunAsSpecified workloadMode = "serve"
	// Drain means no CronJob that starts, and the Deployment stays as it is: its server runs until the Jobs beside it have ended,
	// which may need it, and whose pods may be bound to its node.
	Drain workloadMode = "drain"
	// ScaleToZero means no replica, and no CronJob that starts.
	ScaleToZero workloadMode = "stand down"
	// ServeOn means that the Deployment and the CronJobs stay as they are, while a check decides whether the server may be stopped.
	KeepRunning workloadMode = "serve on"
)

// Step is the one thing that a decision does beside that.
type Step string

// The steps.
const (
	StepNone             Step = ""
	StepObserve          Step = "look at the cluster"
	StepCreateCheckJob   Step = "create the Job that checks"
	StepCreateJob        Step = "create the Job"
	StepDeleteJob        Step = "delete a Job"
	StepRemoveAnnotation Step = "remove the annotation"
)

const (
	// retryDelay is the pause after a failure that may go away by itself.
	failureRetryDelay = 2 * time.Minute
	// RecreateDelay is when to look again after something that ends soon and causes no event: a deleted Job, or pods that still
	// use the database.
	ShortRequeue = 2 * time.Second
	// WatchDelay is how often an unfinished Job is read: a pod that waits for something causes no event.
	JobPollInterval = 10 * time.Second
	// fallbackDelay is for what an event reports long before.
	fallbackRequeue = 5 * time.Minute

	cronJobDeadline = resources.CronJobDeadlineSeconds * time.Second
)

// ConditionMigration says whether the database has the schema of the supported version.
const ConditionMigration = "Migration"

// Reasons of the conditions while a migration is requested. Those with Force are for a migration that the annotation
// asked for; clients of the original know them.
const (
	ReasonMigrationChecking         = "MigrationChecking"
	ReasonMigrationCheckFailed      = "MigrationCheckFailed"
	ReasonMigrationRunning          = "MigrationRunning"
	ReasonMigrationScalingDown      = "MigrationScalingDown"
	ReasonMigrationRetrying         = "MigrationRetrying"
	ReasonMigrationFailed           = "MigrationFailed"
	ReasonMigrationError            = "MigrationError"
	ReasonMigrationSucceeded        = "MigrationSucceeded"
	ReasonForceMigrationRunning     = "ForceMigrationRunning"
	ReasonForceMigrationScalingDown = "ForceMigrationScalingDown"
	ReasonForceMigrationRestart     = "ForceMigrationRestartRequested"
	ReasonDowngradeRefused          = "DowngradeRefused"
)

// Report is what the condition Migration says. Unless the reconciliation continues with the rollout, Progressing
// says the same, and Available as soon as the server is stopped.
type Report struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Progressing: the operator continues by itself.
	Progressing bool
}

// KeepsServer says of a reason of the condition that the Deployment of the server stays as it is.
func PinsServer(reason string) bool {
	return reason == ReasonDowngradeRefused || reason == ReasonMigrationChecking || reason == ReasonMigrationCheckFailed
}

// Decision is what one reconciliation does about the migration.
type Decision struct {
	// Rule is the name of the rule that decided.
	Rule string
	// Workloads says what becomes of server and CronJobs.
	Workloads workloadMode
	// Serving: the server is ready while the Jobs beside it end.
	ServerReady bool
	// Step is done after the objects are applied. Job is the Job that it is about.
	Step Step
	Job  *JobState
	// Subject stands for the migration that a Job to create checks.
	CheckHash string
	// Report is what the conditions say; nil leaves them to the rollout.
	Report *Report
	// Record replaces what is written down; nil leaves it.
	Record *mlflowv1.MigrationStatus
	// Retry is when to look again at the latest; zero waits for an event.
	RequeueAfter time.Duration
}

// Rolls reports that the reconciliation continues with the rollout of the server.
func (d *Decision) ContinuesRollout() bool {
	return d.Workloads == RunAsSpecified || d.Workloads == KeepRunning
}

// migrationRule is one line of the state machine.
type migrationRule struct {
	name string
	when func(*Facts) bool
	then func(*Facts) Decision
}

// Decide returns what the first rule that fits says. The last rule fits always. Whatever stops the server stops the
// Jobs beside it first.
func Decide(f *Facts) Decision {
	rule := migrationRules[slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.when(f) })]
	d := rule.then(f)
	d.Rule = rule.name
	if d.Workloads == ScaleToZero && f.Observed != nil && f.Observed.CronJobsBusy() {
		d.Workloads, d.ServerReady = Drain, f.Observed.ServerReady
	}
	return d
}

// migrationRules are the state machine. Rules above "look" need nothing but the object, so that an object at rest costs
// no request; those below may rely on Live.
var migrationRules = slices.Concat(idleRules, checkRules, jobRules)

// restRules decide without Live, until it is needed.
var idleRules = []migrationRule{
	{"nothing is requested",
		func(f *Facts) bool { return !f.requested() }, resume},
	{"the server follows a migrated database",
		func(f *Facts) bool { return f.rolloutPending() }, awaitRollout},
	{"a recorded failure holds",
		func(f *Facts) bool { return f.Force == "" && f.failureHolds() }, keepFailure},
	{"look",
		func(f *Facts) bool { return f.Observed == nil },
		func(*Facts) Decision {
			return Decision{Workloads: ScaleToZero, Step: StepObserve}
		}},
}

// workRules stop the server and migrate.
var jobRules = []migrationRule{
	{"the Job is on its way out",
		func(f *Facts) bool { return f.Observed.Job != nil && f.Observed.Job.Terminating }, awaitDeletion},
	{"the Job does not answer what is requested",
		func(f *Facts) bool { return f.jobFinished() && !f.satisfiesRequest(f.Observed.Job) }, recreateJob},
	{"the Job failed under other settings",
		func(f *Facts) bool {
			return f.jobFailed() && f.Record.JobUID == string(f.Observed.Job.UID) && f.changedSinceFailure()
		}, recreateChangedJob},
	{"the Job failed for good",
		func(f *Facts) bool { return f.jobFailed() && f.Observed.Job.Failure.Terminal }, recordFailure},
	{"the Job failed and is tried again",
		func(f *Facts) bool { return f.jobFailed() }, retryJob},
	{"the Job has migrated",
		func(f *Facts) bool { return f.jobFinished() }, recordSuccess},
	{"a failure that the original recorded holds",
		func(f *Facts) bool { return f.Force == "" && f.hasLegacyFailure() }, keepFailure},
	{"the Job cannot be what is wanted and never started",
		func(f *Facts) bool { return f.Observed.Job != nil && f.isSuperseded(f.Observed.Job) }, replaceJob},
	{"a Job of another generation, or of an earlier MLflow, is idle",
		func(f *Facts) bool { return f.Observed.Job == nil && f.idleOther() != nil }, deleteOtherJob},
	{"a Job beside the server never ran or overstays",
		func(f *Facts) bool { return f.removableCronJobRun() != nil }, deleteCronJobRun},
	{"Jobs beside the server continue",
		func(f *Facts) bool { return f.Observed.CronJobsBusy() }, awaitCronJobRuns},
	{"pods still use the database",
		func(f *Facts) bool { return !f.Observed.DatabaseIdle() }, awaitIdleDatabase},
	{"the Job runs",
		func(f *Facts) bool { return f.Observed.Job != nil }, awaitJob},
	{"another Job has not ended",
		func(f *Facts) bool { return len(f.Observed.OtherJobs) > 0 }, awaitOtherJob},
	{"a Job is needed",
		func(*Facts) bool { return true }, createJob},
}

func (f *Facts) jobFinished() bool {
	return f.Observed.Job != nil && f.Observed.Job.Phase != JobRunning
}

func (f *Facts) jobFailed() bool { return f.Observed.Job != nil && f.Observed.Job.Phase == JobFailed }

func (f *Facts) changedSinceFailure() bool {
	return f.Record.Outcome == mlflowv1.MigrationFailed && !f.failureHolds()
}

// superseded reports that a Job which has not started would run an older image, or was made before it was forced. Waiting
// for it could be for ever.
func (f *Facts) isSuperseded(j *JobState) bool {
	return !j.Started && (j.Image != f.Image || f.Force != "" && j.RequestHash != f.Force)
}

// idleOther is a Job of another generation that does not run its program, and so cannot be waited for, or one of an earlier MLflow that
// has the name of ours.
func (f *Facts) idleOther() *JobState {
	i := slices.IndexFunc(f.Observed.OtherJobs, func(j JobState) bool { return !j.Terminating && !j.isRunningProgram() })
	if i < 0 {
		return nil
	}
	return &f.Observed.OtherJobs[i]
}

// endable is a Job beside the server that is not worth waiting for: it never ran, and may never be able to, or hangs.
func (f *Facts) removableCronJobRun() *JobState {
	i := slices.IndexFunc(f.Observed.CronJobRuns, func(j JobState) bool {
		return !j.Terminating && (!j.Started || f.Now.Sub(j.StartedAt) > cronJobDeadline)
	})
	if i < 0 {
		return nil
	}
	return &f.Observed.CronJobRuns[i]
}

// untilEvent is when to look after a Job is deleted. Nothing reports the end of a Job that the original made, or that has no
// owner.
func deletionRequeue(j *JobState) time.Duration {
	if j.Managed && !j.Orphaned {
		return fallbackRequeue
	}
	return ShortRequeue
}

func (f *Facts) withTrigger(format string, args ...any) string {
	return fmt.Sprintf(format, args...) + " because " + f.trigger()
}
