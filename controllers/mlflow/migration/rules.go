package migration

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// workloadMode is the desired state of the Deployments and CronJobs.
type workloadMode string

const (
	// RunAsSpecified applies the Deployments and CronJobs of the spec.
	RunAsSpecified workloadMode = "RunAsSpecified"
	// Drain suspends the CronJobs and does not change the Deployments: running Jobs may need the server, and their pods its node.
	Drain workloadMode = "Drain"
	// ScaleToZero scales the Deployments to zero and suspends the CronJobs.
	ScaleToZero workloadMode = "ScaleToZero"
	// KeepRunning changes neither Deployments nor CronJobs until a check permits stopping the server.
	KeepRunning workloadMode = "KeepRunning"
)

// Step is the action of a decision, in addition to its workload mode.
type Step string

// The steps.
const (
	StepNone             Step = ""
	StepObserve          Step = "observe"
	StepCreateCheckJob   Step = "create check Job"
	StepCreateJob        Step = "create Job"
	StepDeleteJob        Step = "delete Job"
	StepRemoveAnnotation Step = "remove annotation"
)

const (
	// failureRetryDelay is the pause after a retryable failure.
	failureRetryDelay = 2 * time.Minute
	// ShortRequeue is the pause for short waits without an event, such as for a terminating Job.
	ShortRequeue = 2 * time.Second
	// JobPollInterval is the interval at which an unfinished Job is read: a waiting pod causes no event.
	JobPollInterval = 10 * time.Second
	// fallbackRequeue is the pause if an event normally arrives earlier.
	fallbackRequeue = 5 * time.Minute

	cronJobDeadline = resources.CronJobDeadlineSeconds * time.Second
)

// ConditionMigration is True once a requested migration and the rollout after it are complete.
const ConditionMigration = "Migration"

// Reasons of the conditions while a migration is requested. Reasons with Force are for ForceAnnotation, because clients of the legacy
// operator rely on the difference.
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

// Report is the content of the condition Migration. Unless the reconcile continues with the rollout, Progressing gets the same
// reason and message, and so does Available unless Decision.ServerReady is true.
type Report struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Progressing is true if the operator continues without a change by the user. RunAsSpecified ignores it.
	Progressing bool
}

// PinsServer reports whether the Deployments must not change while the condition has this reason.
func PinsServer(reason string) bool {
	return slices.Contains([]string{ReasonDowngradeRefused, ReasonMigrationChecking, ReasonMigrationCheckFailed, ReasonMigrationError}, reason)
}

// Decision is the result of one evaluation of the rules.
type Decision struct {
	// Rule is the name of the rule that matched.
	Rule string
	// Workloads is the desired mode of server and CronJobs.
	Workloads workloadMode
	// ServerReady is true if the server is ready while Jobs of CronJobs finish.
	ServerReady bool
	// Step is executed after the objects are applied. Job is the Job that StepDeleteJob deletes.
	Step Step
	Job  *JobState
	// CheckHash identifies the migration for which StepCreateCheckJob creates a Job.
	CheckHash string
	// Report is the content of the condition Migration, or nil to keep that condition.
	Report *Report
	// Record replaces status.migration unless nil.
	Record *mlflowv1.MigrationStatus
	// RequeueAfter is the time until the next reconcile if no event triggers one; zero waits for an event.
	RequeueAfter time.Duration
}

// KeepsDeployments reports whether the reconcile writes no Deployment: the pods are those of an earlier reconcile.
func (d *Decision) KeepsDeployments() bool {
	return d.Workloads == Drain || d.Workloads == KeepRunning
}

// ContinuesRollout reports whether the reconcile continues with the rollout of the server.
func (d *Decision) ContinuesRollout() bool {
	return d.Workloads == RunAsSpecified || d.Workloads == KeepRunning
}

// migrationRule is a transition of the state machine.
type migrationRule struct {
	name string
	when func(*Facts) bool
	then func(*Facts) Decision
}

// Decide returns the decision of the first matching rule; the last rule always matches. While CronJobsBusy, Drain replaces ScaleToZero.
func Decide(f *Facts) Decision {
	rule := migrationRules[slices.IndexFunc(migrationRules, func(r migrationRule) bool { return r.when(f) })]
	d := rule.then(f)
	d.Rule = rule.name
	if d.Workloads == ScaleToZero && f.Observed != nil && f.Observed.CronJobsBusy() {
		d.Workloads, d.ServerReady = Drain, f.Observed.ServerReady
	}
	return d
}

// migrationRules is the state machine. idleRules need only the MLflow, so that an idle MLflow causes no request;
// the other rules may use Observed.
var migrationRules = slices.Concat(idleRules, checkRules, jobRules)

// idleRules decide without Observed.
var idleRules = []migrationRule{
	{"nothing is requested",
		func(f *Facts) bool { return !f.requested() }, resume},
	{"the server is rolled out after the migration",
		func(f *Facts) bool { return f.rolloutPending() }, awaitRollout},
	{"a failure is recorded",
		func(f *Facts) bool { return f.Force == "" && f.failureHolds() }, keepFailure},
	{"the workloads were not observed",
		func(f *Facts) bool { return f.Observed == nil },
		func(*Facts) Decision {
			return Decision{Workloads: ScaleToZero, Step: StepObserve}
		}},
}

// jobRules stop the server and run the migration Job.
var jobRules = []migrationRule{
	{"the Job is being deleted",
		func(f *Facts) bool { return f.Observed.Job != nil && f.Observed.Job.Terminating }, awaitDeletion},
	{"the finished Job does not satisfy the request",
		func(f *Facts) bool { return f.jobFinished() && !f.satisfiesRequest(f.Observed.Job) }, recreateJob},
	{"the settings changed after the Job failed",
		func(f *Facts) bool {
			return f.jobFailed() && f.Record.JobUID == string(f.Observed.Job.UID) && f.changedSinceFailure()
		}, recreateChangedJob},
	{"the Job failed permanently",
		func(f *Facts) bool { return f.jobFailed() && f.Observed.Job.Failure.Terminal }, recordFailure},
	{"the Job failed and is retried",
		func(f *Facts) bool { return f.jobFailed() }, retryJob},
	{"the Job has migrated",
		func(f *Facts) bool { return f.jobFinished() }, recordSuccess},
	{"the legacy operator recorded a permanent failure",
		func(f *Facts) bool { return f.Force == "" && f.hasLegacyFailure() }, keepFailure},
	{"the Job differs from the desired Job, and its program is not running",
		func(f *Facts) bool { return f.Observed.Job != nil && f.isSuperseded(f.Observed.Job) }, replaceJob},
	{"a Job of another generation, or of an earlier MLflow, is idle",
		func(f *Facts) bool { return f.Observed.Job == nil && f.idleOther() != nil }, deleteOtherJob},
	{"a Job of a CronJob never started or exceeds its deadline",
		func(f *Facts) bool { return f.removableCronJobRun() != nil }, deleteCronJobRun},
	{"Jobs of CronJobs are running",
		func(f *Facts) bool { return f.Observed.CronJobsBusy() }, awaitCronJobRuns},
	{"pods still use the database",
		func(f *Facts) bool { return !f.Observed.DatabaseIdle() }, awaitIdleDatabase},
	{"the Job runs",
		func(f *Facts) bool { return f.Observed.Job != nil }, awaitJob},
	{"another Job is running",
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

// isSuperseded reports whether a Job whose program is not running has another image or predates the force annotation. Such a Job may never
// start.
func (f *Facts) isSuperseded(j *JobState) bool {
	return !j.Started && (j.Image != f.Image || f.Force != "" && j.RequestHash != f.Force)
}

// idleOther returns one of OtherJobs whose program is not running and that is not terminating, or nil.
func (f *Facts) idleOther() *JobState {
	i := slices.IndexFunc(f.Observed.OtherJobs, func(j JobState) bool { return !j.Terminating && !j.inProgress() })
	if i < 0 {
		return nil
	}
	return &f.Observed.OtherJobs[i]
}

// removableCronJobRun returns one of CronJobRuns that never started or exceeded cronJobDeadline, and is not terminating, or nil.
func (f *Facts) removableCronJobRun() *JobState {
	i := slices.IndexFunc(f.Observed.CronJobRuns, func(j JobState) bool {
		return !j.Terminating && (!j.Started || f.Now.Sub(j.StartedAt) > cronJobDeadline)
	})
	if i < 0 {
		return nil
	}
	return &f.Observed.CronJobRuns[i]
}

// deletionRequeue returns the pause after a Job is deleted. A Job of a CronJob or of the legacy operator causes no event, and an orphaned
// Job may cause none.
func deletionRequeue(j *JobState) time.Duration {
	if j.Managed && !j.Orphaned {
		return fallbackRequeue
	}
	return ShortRequeue
}

func (f *Facts) withTrigger(format string, args ...any) string {
	return fmt.Sprintf(format, args...) + " because " + f.trigger()
}
